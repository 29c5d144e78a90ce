# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness around sizes: sentences beyond a limit, data without sentences."""

from fairseq_edits.edit import Edit, Replace

_DATA_UTILS = "fairseq/data/data_utils.py"
_IMPORT = "from fairseq.user_error import UserError\n"

EDITS = [
    Edit(
        "longer-than-max-tokens",
        "a sentence longer than --max-tokens ended in an assertion that did not say which",
        Replace(
            _DATA_UTILS,
            "    if fixed_shapes is None:\n        if num_tokens_vec is None:\n",
            """\
    if fixed_shapes is None and num_tokens_vec is not None and max_tokens > 0:
        if len(indices) > 0 and num_tokens_vec.max() > max_tokens:
            raise UserError(
                f"sentence {indices[num_tokens_vec.argmax()] + 1} has {num_tokens_vec.max()} tokens with </s>, "
                f"more than --max-tokens {max_tokens}; give a larger one"
            )

    if fixed_shapes is None:
        if num_tokens_vec is None:
""",
        ),
        Replace(
            _DATA_UTILS,
            "from fairseq.file_io import PathManager\n",
            f"from fairseq.file_io import PathManager\n{_IMPORT}",
        ),
    ),
    Edit(
        "longer-than-the-model",
        "a sentence longer than the model takes ended in a traceback",
        Replace(
            "fairseq/tasks/fairseq_task.py",
            """\
                raise Exception(
                    (
                        "Size of sample #{} is invalid (={}) since max_positions={}, "
                        "skip this example with --skip-invalid-size-inputs-valid-test"
                    ).format(ignored[0], dataset.size(ignored[0]), max_positions)
                )
""",
            """\
                sizes = np.atleast_1d(dataset.size(ignored[0])).tolist()
                known = [name for name, data in self.datasets.items() if data is dataset]
                raise UserError(
                    f"sentence {ignored[0] + 1} of {(known or ['the data'])[0]} has "
                    f"{' and '.join(map(str, sizes))} tokens with </s>, more than the {max_positions} that the model "
                    "takes; leave such sentences out with "
                    "--skip-invalid-size-inputs-valid-test"
                )
""",
        ),
        # also in a training, where they are left out: which, and for which limits
        Replace(
            "fairseq/tasks/fairseq_task.py",
            """\
            logger.warning(
                (
                    "{:,} samples have invalid sizes and will be skipped, "
                    "max_positions={}, first few sample ids={}"
                ).format(len(ignored), max_positions, ignored[:10])
            )
""",
            """\
            known = [name for name, data in self.datasets.items() if data is dataset]
            logger.warning(
                f"{len(ignored):,} of {len(indices) + len(ignored):,} sentences of {(known or ['the data'])[0]} are "
                f"left out, with more than {max_positions} tokens with </s> (the least of --max-tokens, "
                "--max-source-positions and --max-target-positions), such as "
                + ", ".join(str(index + 1) for index in sorted(ignored)[:3])
            )
""",
        ),
        Replace(
            "fairseq/tasks/fairseq_task.py",
            "import torch\nfrom fairseq import metrics,",
            "import numpy as np\nimport torch\nfrom fairseq import metrics,",
        ),
        Replace(
            "fairseq/tasks/fairseq_task.py",
            "from fairseq.optim.amp_optimizer import AMPOptimizer\n",
            f"from fairseq.optim.amp_optimizer import AMPOptimizer\n{_IMPORT}",
        ),
    ),
    Edit(
        "unused-validation-data",
        "validation data that would be ignored ended in a traceback",
        Replace(
            _DATA_UTILS,
            "        raise ValueError(msg)\n",
            "        raise UserError(msg.strip())\n",
        ),
    ),
    Edit(
        "unequal-sides",
        "binarised data with more sentences on one side ended in an assertion that did not say how many",
        Replace(
            "fairseq/data/language_pair_dataset.py",
            """\
            assert len(src) == len(
                tgt
            ), "Source and target must contain the same number of examples"
""",
            """\
            if len(src) != len(tgt):
                raise UserError(
                    f"the source has {len(src)} sentences but the target has {len(tgt)}; mend the text, where line n "
                    "of one must be the translation of line n of the other, and run fairseq-preprocess again"
                )
""",
        ),
        Replace(
            "fairseq/data/language_pair_dataset.py",
            "from fairseq.data import FairseqDataset, data_utils\n",
            f"from fairseq.data import FairseqDataset, data_utils\n{_IMPORT}",
        ),
    ),
    Edit(
        "no-sentences",
        "data of which nothing is left ended in a traceback or, in generation, in a division by zero",
        Replace(
            "fairseq/data/iterators.py",
            """\
            raise Exception(
                "The dataset is empty. This could indicate "
                "that all elements in the dataset have been skipped. "
                "Try increasing the max number of allowed tokens or using "
                "a larger dataset."
            )
""",
            """\
            raise UserError(
                "no sentences are left, because the data is empty or every sentence is longer than the limits "
                "(--max-tokens, --max-source-positions, --max-target-positions); raise them or use other data"
            )
""",
            count=2,
        ),
        Replace(
            "fairseq/data/iterators.py",
            "from fairseq.stop_signal import leave_to_parent\n",
            f"from fairseq.stop_signal import leave_to_parent\n{_IMPORT}",
        ),
        Replace(
            "fairseq_cli/generate.py",
            '    logger.info("NOTE: hypothesis and token scores are output in base 2")\n',
            "    if num_sentences == 0:\n"
            '        raise UserError(f"{cfg.dataset.gen_subset} has no sentences to translate")\n'
            '    logger.info("NOTE: hypothesis and token scores are output in base 2")\n',
        ),
    ),
    Edit(
        "disabled-validation",
        "--disable-validation wanted validation data all the same",
        Replace(
            "fairseq_cli/train.py",
            """\
    if cfg.dataset.combine_valid_subsets:
        task.load_dataset("valid", combine=True, epoch=1)
""",
            """\
    if cfg.dataset.disable_validation:
        pass
    elif cfg.dataset.combine_valid_subsets:
        task.load_dataset("valid", combine=True, epoch=1)
""",
        ),
    ),
    Edit(
        "validation-before-training",
        "a validation sentence that cannot be computed was found at the first validation, after hours",
        Replace(
            "fairseq_cli/train.py",
            "    # Load the latest checkpoint if one is available and restore the\n",
            """\
    if not cfg.dataset.disable_validation:
        for subset in cfg.dataset.valid_subset.split(","):
            if subset in task.datasets:
                trainer.get_valid_iterator(subset)

    # Load the latest checkpoint if one is available and restore the
""",
        ),
    ),
]
