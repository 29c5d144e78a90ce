# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Speed of the optimiser: Adam's step in one kernel instead of seven operations for each parameter."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

EDITS = [
    Edit(
        "fused-adam",
        "Adam took seven operations for each parameter, and a fused step only from apex, which has to be built by hand",
        AddFile("fairseq/optim/fused_adam_step.py", Path(__file__).parent / "added" / "fused_adam_step.py"),
        Replace(
            "fairseq/optim/adam.py",
            """\
                )
            self._optimizer = Adam(params, **self.optimizer_config)

    @property
""",
            """\
                )
            self._optimizer = Adam(
                params, fused=not self.cfg.use_old_adam, **self.optimizer_config
            )

    @property
""",
        ),
        Replace(
            "fairseq/optim/adam.py",
            """\
        amsgrad=False,
    ):
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad
        )
        super(Adam, self).__init__(params, defaults)
""",
            """\
        amsgrad=False,
        fused=False,
    ):
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad
        )
        super(Adam, self).__init__(params, defaults)
        self.fused = fused
""",
        ),
        Replace(
            "fairseq/optim/adam.py",
            """\
            loss = closure()

        for group in self.param_groups:
""",
            """\
            loss = closure()

        if self.fused and fused_adam_step(self):
            return loss

        for group in self.param_groups:
""",
        ),
        Replace(
            "fairseq/optim/adam.py",
            '"help": "Use fairseq.optim.adam.Adam"',
            '"help": "Adam in separate operations instead of a fused kernel"',
        ),
        Replace(
            "fairseq/optim/adam.py",
            "from fairseq.optim.fused_adam import get_fused_adam_class\n",
            "from fairseq.optim.fused_adam import get_fused_adam_class\n"
            "from fairseq.optim.fused_adam_step import fused_adam_step\n",
        ),
    ),
]
