# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of what Python 3.11+ and NumPy 1.24+ no longer accept."""

from fairseq_edits.edit import Edit, Replace

_CONFIG_FIELDS = (
    ("common", "CommonConfig"),
    ("common_eval", "CommonEvalConfig"),
    ("distributed_training", "DistributedTrainingConfig"),
    ("dataset", "DatasetConfig"),
    ("optimization", "OptimizationConfig"),
    ("checkpoint", "CheckpointConfig"),
    ("bmuf", "FairseqBMUFConfig"),
    ("generation", "GenerationConfig"),
    ("eval_lm", "EvalLMConfig"),
    ("interactive", "InteractiveConfig"),
    ("ema", "EMAConfig"),
)

EDITS = [
    Edit(
        "mutable-defaults",
        "Python 3.11+ refuses a dataclass instance as the default of a dataclass field, so `import fairseq` fails",
        *(
            Replace(
                "fairseq/dataclass/configs.py",
                f"    {name}: {kind} = {kind}()\n",
                f"    {name}: {kind} = field(default_factory={kind})\n",
            )
            for name, kind in _CONFIG_FIELDS
        ),
        Replace(
            "fairseq/models/transformer/transformer_config.py",
            "    encoder: EncDecBaseConfig = EncDecBaseConfig()\n",
            "    encoder: EncDecBaseConfig = field(default_factory=EncDecBaseConfig)\n",
        ),
        Replace(
            "fairseq/models/transformer/transformer_config.py",
            "    decoder: DecoderConfig = DecoderConfig()\n",
            "    decoder: DecoderConfig = field(default_factory=DecoderConfig)\n",
        ),
        Replace(
            "fairseq/models/transformer/transformer_config.py",
            "    quant_noise: QuantNoiseConfig = field(default=QuantNoiseConfig())\n",
            "    quant_noise: QuantNoiseConfig = field(default_factory=QuantNoiseConfig)\n",
        ),
    ),
    Edit(
        "config-store-defaults",
        "hydra_init read `.default` of those fields, which a default_factory leaves unset",
        Replace(
            "fairseq/dataclass/initialize.py",
            "        v = FairseqConfig.__dataclass_fields__[k].default\n",
            "        v = FairseqConfig()._get_default(k)\n",
        ),
    ),
    Edit(
        "numpy-aliases",
        "np.int and np.float are gone since NumPy 1.24",
        Replace("fairseq/data/data_utils.py", "                    np.int,\n", "                    int,\n"),
        Replace("fairseq/modules/dynamic_crf_layer.py", 'np.float("inf")', 'float("inf")'),
    ),
]
