# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how fairseq composes its configuration with hydra 1.3 and omegaconf 2.3."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "compose",
        "hydra.experimental is gone, and hydra 1.3 warns when version_base is not given or `strict` is",
        Replace(
            "fairseq/dataclass/utils.py",
            "from hydra.experimental import compose, initialize\n",
            "from hydra import compose, initialize\n",
        ),
        Replace(
            "fairseq/dataclass/utils.py",
            "    with initialize(config_path=config_path):\n",
            '    with initialize(config_path=config_path, version_base="1.3"):\n',
        ),
        Replace(
            "fairseq/dataclass/utils.py",
            '            composed_cfg = compose("config", overrides=overrides, strict=False)\n',
            '            composed_cfg = compose("config", overrides=overrides)\n'
            "            OmegaConf.set_struct(composed_cfg, False)\n",
        ),
    ),
    Edit(
        "package-header",
        "hydra 1.1+ warns about the keyword _group_ in a package header; the primary config is always global",
        Replace("fairseq/config/config.yaml", "# @package _group_\n", "# @package _global_\n"),
    ),
]
