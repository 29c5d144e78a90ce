# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of --bf16 and --fp16."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "bf16-without-tpu",
        "--bf16 switched --tpu on and died in 'NoneType' object has no attribute 'xla_device'",
        Replace(
            "fairseq/options.py",
            """\
    if args.bf16:
        args.tpu = True
""",
            "",
        ),
        Replace(
            "fairseq/dataclass/configs.py",
            'metadata={"help": "use bfloat16; implies --tpu"}',
            'metadata={"help": "use bfloat16"}',
        ),
    ),
    Edit(
        "fp16-without-gpu",
        "--fp16 without a GPU died in a traceback about CUDA",
        Replace(
            "fairseq/trainer.py",
            '                assert not cfg.common.amp, "Cannot use fp16 and AMP together"\n',
            """\
                assert not cfg.common.amp, "Cannot use fp16 and AMP together"
                if not (
                    self.cuda
                    or self.tpu
                    or cfg.common.memory_efficient_fp16
                    or cfg.common.fp16_no_flatten_grads
                ):
                    raise UserError(
                        "--fp16 needs a GPU; on CPU use --bf16 or --memory-efficient-fp16"
                    )
""",
        ),
        Replace(
            "fairseq/trainer.py",
            "from fairseq.optim import lr_scheduler\n",
            "from fairseq.optim import lr_scheduler\nfrom fairseq.user_error import UserError\n",
        ),
    ),
    Edit(
        "amp-without-gpu",
        "--amp without a GPU warned at every update and trained in full precision",
        Replace(
            "fairseq/trainer.py",
            "            elif cfg.common.amp:\n                self._amp_retries = 0\n",
            """\
            elif cfg.common.amp:
                if not self.cuda:
                    raise UserError("--amp needs a GPU; on CPU use --bf16")
                self._amp_retries = 0
""",
        ),
    ),
    Edit(
        "fp16-overflow-on-cpu",
        "a gradient overflow moved its norm to the GPU even where there is none",
        Replace(
            "fairseq/trainer.py",
            "            grad_norm = torch.tensor(0.0).cuda()\n",
            "            grad_norm = torch.tensor(0.0, device=self.device)\n",
        ),
    ),
]
