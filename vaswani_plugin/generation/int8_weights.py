"""Models whose products have 8-bit integer weights, for translating on a CPU: --int8."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from vaswani_plugin.errors import UserError
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer
from vaswani_plugin.modules.int8_linear import Int8Linear, Int8Projection, available
from vaswani_plugin.modules.linear import Linear, give_up_packed


def use_int8_weights(models: Sequence[Any], mixed_precision: bool) -> None:
    """Replace every product with a weight matrix in the models; one that has been through this stays as it is.

    Embeddings on the way in, positions, attention and normalisation stay float32.

    Raises:
        ValueError: a model or a precision that this is not for; the sentence says what to leave out.
    """
    if mixed_precision:
        raise UserError("--int8 and --mixed-precision are two precisions of the same products: give one of them")
    for model in models:
        if not isinstance(model, VaswaniTransformer):
            raise UserError(f"--int8 is for this plugin's models, not for a {type(model).__name__}: leave it out")
        weight = model.encoder.embedding.weight
        if weight.device.type != "cpu":
            raise UserError("--int8 is for translating on a CPU: give --cpu too, or --fp16 in its place")
        if weight.dtype != torch.float32:
            raise UserError("--int8 begins with float32 weights: leave out --fp16 and --bf16")
        if not available():
            raise UserError(f"--int8 needs an operator that torch {torch.__version__} lacks here: leave it out")
        if not isinstance(model.decoder.output_embedding, Int8Projection):
            model.decoder.output_embedding = Int8Projection(model.decoder.output_embedding.weight)
            _replace_linear(model)
            give_up_packed(model)


def _replace_linear(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, Linear):
            setattr(module, name, Int8Linear(child.weight, child.bias))
        else:
            _replace_linear(child)
