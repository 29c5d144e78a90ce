# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of torch and logging calls that today's versions warn about or no longer have."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "autocast",
        "torch.cuda.amp is deprecated and warns at every update",
        Replace(
            "fairseq/tasks/fairseq_task.py",
            "            with torch.cuda.amp.autocast(enabled=(isinstance(optimizer, AMPOptimizer))):\n",
            '            with torch.amp.autocast("cuda", enabled=(isinstance(optimizer, AMPOptimizer))):\n',
        ),
        Replace(
            "fairseq/optim/amp_optimizer.py",
            "        self._grad_scaler = torch.cuda.amp.GradScaler(**amp_kwargs)\n",
            '        self._grad_scaler = torch.amp.GradScaler("cuda", **amp_kwargs)\n',
        ),
    ),
    Edit(
        "pin-memory",
        "torch warns when memory is pinned on a machine without an accelerator",
        Replace("fairseq/data/iterators.py", "pin_memory=True,", "pin_memory=torch.cuda.is_available(),", count=2),
    ),
    Edit(
        "logger-warn",
        "Logger.warn is deprecated and warns itself",
        Replace("fairseq/models/fairseq_model.py", "            logger.warn(", "            logger.warning(", count=2),
        Replace("fairseq/trainer.py", "                    logger.warn(", "                    logger.warning("),
        Replace(
            "fairseq/data/transform_eos_concat_langpair_dataset.py",
            "            logger.warn(",
            "            logger.warning(",
            count=2,
        ),
    ),
    Edit(
        "escape-sequence",
        "Python 3.12+ warns about an unknown escape sequence in a plain string",
        Replace("fairseq/models/wav2vec/wav2vec2_asr.py", r'"encoder.layers.\d."', r'r"encoder.layers.\d."'),
    ),
    Edit(
        "attention-mask-types",
        "torch warns when one of the two attention masks is boolean and the other is not",
        Replace(
            "fairseq/modules/multihead_attention.py",
            "                return F.multi_head_attention_forward(\n",
            """\
                if (
                    key_padding_mask is not None
                    and attn_mask is not None
                    and attn_mask.is_floating_point()
                ):
                    key_padding_mask = torch.zeros_like(
                        key_padding_mask, dtype=attn_mask.dtype
                    ).masked_fill_(key_padding_mask.bool(), float("-inf"))
                return F.multi_head_attention_forward(
""",
        ),
    ),
    Edit(
        "jit-script",
        "torch.jit.script is deprecated and warns at import; these functions run as well without it",
        Replace("fairseq/models/model_utils.py", "@torch.jit.script\ndef ", "def ", count=5),
    ),
    Edit(
        "absent-parameters",
        "a layer without a bias counts as sharing it with every other such layer: a line in the log for each",
        Replace(
            "fairseq/trainer.py",
            """\
    for name, param in module._parameters.items():
""",
            """\
    for name, param in module._parameters.items():
        if param is None:
            continue
""",
        ),
    ),
]
