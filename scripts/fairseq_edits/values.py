# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness against numbers without a meaning among the flags."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

_ADDED = Path(__file__).parent / "added"

EDITS = [
    Edit(
        "flag-values",
        "numbers without a meaning ended in tracebacks far from their flag, and NaN was computed with",
        AddFile("fairseq/flag_values.py", _ADDED / "flag_values.py"),
        Replace(
            "fairseq/options.py",
            "        ARCH_CONFIG_REGISTRY[args.arch](args)\n\n    if parse_known:\n",
            "        ARCH_CONFIG_REGISTRY[args.arch](args)\n\n    check_values(vars(args))\n\n    if parse_known:\n",
        ),
        Replace(
            "fairseq/options.py",
            "# this import is for backward compatibility\n",
            "from fairseq.flag_values import check_values\n\n# this import is for backward compatibility\n",
        ),
        Replace(
            "fairseq_cli/hydra_train.py",
            "    OmegaConf.set_struct(cfg, True)\n",
            "    OmegaConf.set_struct(cfg, True)\n"
            "    for part in cfg.values():\n"
            "        if isinstance(part, DictConfig):\n"
            "            check_values(OmegaConf.to_container(part))\n",
        ),
        Replace(
            "fairseq_cli/hydra_train.py",
            "from fairseq.hydra_start import (\n",
            "from fairseq.flag_values import check_values\nfrom fairseq.hydra_start import (\n",
        ),
        Replace(
            "fairseq_cli/hydra_train.py",
            "from omegaconf import OmegaConf, open_dict\n",
            "from omegaconf import DictConfig, OmegaConf, open_dict\n",
        ),
    ),
    Edit(
        "adam-betas",
        "--adam-betas was evaluated as code, and two numbers that Adam cannot use ended in a traceback",
        Replace(
            "fairseq/optim/adam.py",
            """\
            "betas": eval(self.cfg.adam_betas)
            if isinstance(self.cfg.adam_betas, str)
            else OmegaConf.to_container(self.cfg.adam_betas),
""",
            """\
            "betas": adam_betas(
                self.cfg.adam_betas
                if isinstance(self.cfg.adam_betas, str)
                else OmegaConf.to_container(self.cfg.adam_betas)
            ),
""",
        ),
        Replace(
            "fairseq/optim/adam.py",
            "from fairseq.dataclass import FairseqDataclass\n",
            "from fairseq.dataclass import FairseqDataclass\nfrom fairseq.flag_values import adam_betas\n",
        ),
        Replace(
            "fairseq/optim/cpu_adam.py",
            '            "betas": eval(self.cfg.adam_betas),\n',
            '            "betas": adam_betas(self.cfg.adam_betas),\n',
        ),
        Replace(
            "fairseq/optim/cpu_adam.py",
            "from fairseq.dataclass import FairseqDataclass\n",
            "from fairseq.dataclass import FairseqDataclass\nfrom fairseq.flag_values import adam_betas\n",
        ),
    ),
]
