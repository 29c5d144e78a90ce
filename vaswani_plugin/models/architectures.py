"""Named architectures: Table 3 of the paper, each listing only what differs from the base model."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Union

from fairseq.models import register_model_architecture
from omegaconf import DictConfig, open_dict

import vaswani_plugin.models.vaswani_transformer  # noqa: F401  (registers the model that these are sizes of)

ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "vaswani_base": {},
    # (A) heads, at constant computation: d_k = d_v = d_model / h
    "vaswani_base_h1": {"num_heads": 1},
    "vaswani_base_h4": {"num_heads": 4},
    "vaswani_base_h16": {"num_heads": 16},
    "vaswani_base_h32": {"num_heads": 32},
    # (B) width of keys alone
    "vaswani_base_dk16": {"d_k": 16},
    "vaswani_base_dk32": {"d_k": 32},
    # (C) size
    "vaswani_base_n2": {"num_layers": 2},
    "vaswani_base_n4": {"num_layers": 4},
    "vaswani_base_n8": {"num_layers": 8},
    "vaswani_base_d256": {"d_model": 256},
    "vaswani_base_d1024": {"d_model": 1024},
    "vaswani_base_ff1024": {"d_ff": 1024},
    "vaswani_base_ff4096": {"d_ff": 4096},
    # (D) dropout; its rows for label smoothing are the criterion's flag
    "vaswani_base_dropout00": {"dropout": 0.0},
    "vaswani_base_dropout02": {"dropout": 0.2},
    # (E) learned positions
    "vaswani_base_learned_positions": {"learned_positions": True},
    "vaswani_big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
    "vaswani_big_en_fr": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.1},
    # Not in the paper: a size for small data and CPUs.
    "vaswani_tiny": {"num_layers": 4, "d_model": 128, "d_ff": 256, "num_heads": 4, "dropout": 0.3},
}


def _register(name: str, changes: Mapping[str, Any]) -> None:
    # fairseq calls this twice, first on the parsed flags, where only what the user typed is present, and then on
    # the complete configuration: filling in only what is absent lets an explicit flag win, and does it once.
    @register_model_architecture("vaswani_transformer", name)
    def architecture(config: Union[Namespace, DictConfig]) -> None:
        if isinstance(config, Namespace):
            for key, value in changes.items():
                vars(config).setdefault(key, value)
            return
        with open_dict(config):
            for key, value in changes.items():
                if key not in config:
                    config[key] = value


for _name, _changes in ARCHITECTURES.items():
    _register(_name, _changes)
