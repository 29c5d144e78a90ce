# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of the command-line tools: mistakes of the user end in one sentence and a status that is not 0."""

from fairseq_edits.edit import Edit, Replace

# (tool, an import line that ours goes after)
_TOOLS = (
    ("train", "from fairseq.trainer import Trainer\n", "UserError, tells_user_errors"),
    ("generate", "from fairseq.logging.meters import StopwatchMeter, TimeMeter\n", "UserError, tells_user_errors"),
    ("validate", "from fairseq.utils import reset_logging\n", "tells_user_errors"),
    ("eval_lm", "from fairseq.sequence_scorer import SequenceScorer\n", "tells_user_errors"),
    ("preprocess", "from fairseq.data import Dictionary\n", "UserError, tells_user_errors"),
)

EDITS = [
    Edit(
        "one-sentence",
        "a mistake of the user ended in a traceback",
        *(
            Replace(f"fairseq_cli/{tool}.py", line, f"{line}from fairseq.user_error import {names}\n")
            for tool, line, names in _TOOLS
        ),
        *(
            Replace(f"fairseq_cli/{tool}.py", "def cli_main(", "@tells_user_errors\ndef cli_main(")
            for tool in ("train", "generate", "interactive", "validate", "eval_lm", "preprocess")
        ),
    ),
    Edit(
        "argument-assertions",
        "arguments that do not go together ended in assertions",
        Replace(
            "fairseq_cli/generate.py",
            '    assert cfg.common_eval.path is not None, "--path required for generation!"\n',
            "    if cfg.common_eval.path is None:\n"
            '        raise UserError("the model is missing; give its checkpoint with --path")\n',
        ),
        *(
            Replace(
                f"fairseq_cli/{tool}.py",
                """\
    assert (
        not cfg.generation.sampling or cfg.generation.nbest == cfg.generation.beam
    ), "--sampling requires --nbest to be equal to --beam"
""",
                """\
    if cfg.generation.sampling and cfg.generation.nbest != cfg.generation.beam:
        raise UserError(
            f"--sampling draws --beam {cfg.generation.beam} translations; give the same number with --nbest"
        )
""",
            )
            for tool in ("generate", "interactive")
        ),
        Replace(
            "fairseq_cli/generate.py",
            """\
    assert (
        cfg.generation.replace_unk is None or cfg.dataset.dataset_impl == "raw"
    ), "--replace-unk requires a raw text dataset (--dataset-impl=raw)"
""",
            """\
    if cfg.generation.replace_unk is not None and cfg.dataset.dataset_impl != "raw":
        raise UserError("--replace-unk needs the text itself; use --dataset-impl raw, or fairseq-interactive")
""",
        ),
        Replace(
            "fairseq_cli/train.py",
            """\
    assert (
        cfg.dataset.max_tokens is not None or cfg.dataset.batch_size is not None
    ), "Must specify batch size either with --max-tokens or --batch-size"
""",
            """\
    if cfg.dataset.max_tokens is None and cfg.dataset.batch_size is None:
        raise UserError("the size of a batch is missing; give --max-tokens or --batch-size")
""",
        ),
        Replace(
            "fairseq/data/data_utils.py",
            '        raise NotImplementedError(f"Unknown post_process option: {symbol}")\n',
            """\
        raise UserError(
            f"--post-process {symbol} is not known; subword_nmt and sentencepiece are, for example"
        )
""",
        ),
        Replace(
            "fairseq/tasks/translation.py",
            """\
            raise Exception(
                "Could not infer language pair, please provide it explicitly"
            )
""",
            """\
            raise UserError(
                f"{paths[0]} has no binarised data that tells the languages; give the folder that "
                "fairseq-preprocess wrote, or --source-lang and --target-lang"
            )
""",
        ),
        Replace(
            "fairseq/tasks/translation.py",
            "from fairseq.tasks import FairseqTask, register_task\n",
            "from fairseq.tasks import FairseqTask, register_task\nfrom fairseq.user_error import UserError\n",
        ),
    ),
    Edit(
        "validate-task",
        "fairseq-validate had no default task and died in KeyError: None; the checkpoint's task is what counts",
        Replace(
            "fairseq/options.py",
            "def get_validation_parser(default_task=None):\n",
            'def get_validation_parser(default_task="translation"):\n',
        ),
    ),
    Edit(
        "interactive-workers",
        "several workers of fairseq-interactive took lines of one input away from each other",
        Replace(
            "fairseq_cli/interactive.py",
            """\
    distributed_utils.call_main(convert_namespace_to_omegaconf(args), main)
""",
            """\
    if args.distributed_world_size > 1 and args.model_parallel_size == 1:
        raise UserError(
            "fairseq-interactive reads one input in one process; leave out --distributed-world-size"
        )
    distributed_utils.call_main(convert_namespace_to_omegaconf(args), main)
""",
        ),
    ),
    Edit(
        "model-overrides",
        "validation evaluated --model-overrides as code",
        Replace(
            "fairseq_cli/validate.py",
            '        overrides.update(eval(getattr(override_args, "model_overrides", "{}")))\n',
            """\
        overrides.update(
            ast.literal_eval(getattr(override_args, "model_overrides", "{}"))
        )
""",
        ),
        Replace("fairseq_cli/validate.py", "import logging\nimport os\n", "import ast\nimport logging\nimport os\n"),
    ),
    Edit(
        "refused-by-all-workers",
        "a checkpoint that the first worker refused left the others waiting for it until they died in tracebacks",
        Replace(
            "fairseq/trainer.py",
            """\
                state = checkpoint_utils.load_checkpoint_to_cpu(
                    filename, load_on_all_ranks=load_on_all_ranks
                )
                last_optim_state = state.get("last_optimizer_state", None)
""",
            """\
                try:
                    state = checkpoint_utils.load_checkpoint_to_cpu(
                        filename, load_on_all_ranks=load_on_all_ranks
                    )
                    if state.get("cfg") is not None:
                        checkpoint_utils.check_registered(
                            filename, state["cfg"], ["model"]
                        )
                except UserError as error:
                    if not is_distributed or load_on_all_ranks:
                        raise
                    state = {"user_error": str(error)}
                last_optim_state = state.get("last_optimizer_state", None)
""",
        ),
        Replace(
            "fairseq/trainer.py",
            """\
                if self.data_parallel_rank > 0:
                    last_optim_state = state.get("last_optimizer_state", None)

""",
            """\
                if "user_error" in state:
                    raise UserError(state["user_error"])
                if self.data_parallel_rank > 0:
                    last_optim_state = state.get("last_optimizer_state", None)

""",
        ),
    ),
    Edit(
        "other-architecture",
        "resuming with another architecture ended in three chained tracebacks, and an EMA that a checkpoint lacks in a "
        "KeyError because the model's weights were gone by then",
        Replace(
            "fairseq/trainer.py",
            """\
            except Exception:
                raise Exception(
                    "Cannot load model parameters from checkpoint {}; "
                    "please ensure that the architectures match.".format(filename)
                )
""",
            """\
            except (RuntimeError, KeyError) as error:
                lines = [line.strip() for line in str(error).splitlines()]
                reason = lines[1] if len(lines) > 1 else lines[0]
                raise UserError(
                    "Cannot load model parameters from checkpoint {}; please ensure that "
                    "the architectures match ({:.300})".format(filename, reason)
                ) from error
""",
        ),
        Replace(
            "fairseq/trainer.py",
            '                # save memory for later steps\n                del state["model"]\n',
            "                # save memory for later steps\n"
            '                if not self.cfg.ema.store_ema:\n                    del state["model"]\n',
        ),
    ),
    Edit(
        "unknown-choice",
        "an architecture, task or criterion that is not registered was answered with the list of all three hundred",
        Replace(
            "fairseq/options.py",
            "def get_preprocessing_parser(",
            """\
class FairseqArgumentParser(argparse.ArgumentParser):
    \"\"\"Names a missing --user-dir as the likely reason for an unknown architecture, task and the like.\"\"\"

    def error(self, message):
        head, choices, _ = message.partition(" (choose from")
        plugged = ("--arch", "--task", "--criterion", "--optimizer", "--lr-scheduler")
        if choices and any(option in head for option in plugged):
            message = f"{head}; if a plugin defines it, give the plugin's folder with --user-dir"
        super().error(message)


def get_preprocessing_parser(""",
        ),
        Replace(
            "fairseq/options.py",
            "    parser = argparse.ArgumentParser(allow_abbrev=False)\n",
            "    parser = FairseqArgumentParser(allow_abbrev=False)\n",
        ),
    ),
]
