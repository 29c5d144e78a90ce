# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness in resuming: what does not fit the checkpoint is told in a sentence with both sides."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "other-criterion-or-optimiser",
        "another criterion or optimiser than the checkpoint's ended in an assertion's traceback",
        Replace(
            "fairseq/trainer.py",
            """\
            assert (
                last_optim["criterion_name"] == self.get_criterion().__class__.__name__
            ), f"Criterion does not match; please reset the optimizer (--reset-optimizer). {last_optim['criterion_name']} vs {self.get_criterion().__class__.__name__}"
            assert (
                last_optim["optimizer_name"] == self.optimizer.__class__.__name__
            ), f"Optimizer does not match; please reset the optimizer (--reset-optimizer). {last_optim['optimizer_name']} vs {self.optimizer.__class__.__name__}"
""",  # noqa: E501
            """\
            for part, used in (
                ("criterion", self.get_criterion()),
                ("optimizer", self.optimizer),
            ):
                before, now = last_optim[part + "_name"], used.__class__.__name__
                if before != now:
                    raise UserError(
                        f"{filename} was trained with the {part} {before}, but this run has {now}: give the former "
                        f"one as --{part}, or add --reset-optimizer, which also begins the updates at 0 again"
                    )
""",
        ),
    ),
    Edit(
        "epoch-with-fewer-batches",
        "a position that the epoch no longer has, after another --max-tokens, ended in a traceback",
        Replace(
            "fairseq/data/iterators.py",
            """\
                    raise RuntimeError(
                        "Cannot resume training due to dataloader mismatch, please "
                        "report this to the fairseq developers. You can relaunch "
                        "training with `--reset-dataloader` and it should work."
                    )
""",
            """\
                    raise UserError(
                        f"the checkpoint stands after batch {itr_pos} of epoch {self.epoch}, which now has no "
                        "further ones: give the former --max-tokens and --batch-size, or add "
                        "--reset-dataloader, which begins the data from the start"
                    )
""",
        ),
    ),
]
