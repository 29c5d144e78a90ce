"""Dictionaries and a stand-in for fairseq's task, enough to build models and criteria without data on disk."""

from typing import Any, Optional

import torch
from fairseq.data import Dictionary

from vaswani_plugin.models.architectures import ARCHITECTURES
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

SMALL = {"num_layers": 2, "d_model": 12, "d_ff": 20, "num_heads": 3, "dropout": 0.0}


def dictionary(size: int, prefix: str = "w") -> Dictionary:
    result = Dictionary()
    for number in range(size - len(result)):
        result.add_symbol(f"{prefix}{number}")
    return result


class ToyTask:
    def __init__(self, source: Dictionary, target: Optional[Dictionary] = None) -> None:
        self.source_dictionary = source
        self.target_dictionary = source if target is None else target


def build(vocabulary_size: int = 11, **config: Any) -> VaswaniTransformer:
    """A model with one dictionary, in float64 and evaluation mode, every parameter random from a fixed seed."""
    from stock_weights import randomize

    sizes = {"max_source_positions": 64, "max_target_positions": 64, **SMALL, **config}
    model = VaswaniTransformer.build_model(sizes, ToyTask(dictionary(vocabulary_size))).double().eval()
    randomize(model)
    return model


def parameters_on_meta_device(architecture: str, vocabulary_size: int, **config: Any) -> dict[str, torch.nn.Parameter]:
    """Distinct parameters of a named architecture, without their memory."""
    sizes = {"max_source_positions": 256, "max_target_positions": 256, **ARCHITECTURES[architecture], **config}
    with torch.device("meta"):
        return dict(VaswaniTransformer.build_model(sizes, ToyTask(dictionary(vocabulary_size))).named_parameters())
