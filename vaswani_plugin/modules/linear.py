"""Products with weight matrices, by the fastest way that torch brings for them on a CPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from vaswani_plugin.modules.processor import multiplies_bfloat16, multiplies_packed, prefers_onednn
from vaswani_plugin.modules.rounded_linear import RoundedLinear

_LEAST_ROWS = 4
"""Of fewer, a packed matrix is no faster."""


def product(a_NK: Tensor, b_MK: Tensor, out: Optional[Tensor] = None) -> Tensor:
    """a b^T (N, M), without a gradient; where torch multiplies, in the memory of ``out``."""
    if _by_onednn(a_NK, b_MK):
        return _onednn(a_NK.contiguous(), b_MK.contiguous(), None)
    return torch.mm(a_NK, b_MK.T, out=out)


def operand(x: Tensor, precision: torch.dtype) -> Tensor:
    """``x`` rounded to ``precision``, in the type in which this machine multiplies such numbers."""
    rounded = x.to(precision)
    emulated = precision == torch.bfloat16 and x.device.type == "cpu" and not multiplies_bfloat16()
    return rounded.float() if emulated else rounded


@dataclass(frozen=True)
class _Packed:
    """A matrix in the order in which oneDNN reads it, as long as it is still that of the weight."""

    matrix: Tensor
    original: Tensor
    version: int


def pack(weight: Tensor) -> None:
    """Keep a copy of a float32 matrix for :func:`linear` to multiply by where no gradient is wanted.

    Nothing happens but on CPUs with AVX-512, and for other types. The copy is not used once the matrix has changed,
    unless that happened behind torch's back, through ``.data``; where a gradient is wanted, it is given up.
    """
    if (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and not weight.is_inference()
        and multiplies_packed()
    ):
        matrix = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        weight.packed = _Packed(matrix, weight.detach(), weight._version)  # type: ignore[attr-defined]


def give_up_packed(module: nn.Module) -> None:
    """Free what :func:`pack` has kept for the module's parameters."""
    for parameter in module.parameters():
        parameter.packed = None  # type: ignore[attr-defined]


def _packed(x: Tensor, weight: Tensor) -> Optional[Tensor]:
    packed: Optional[_Packed] = getattr(weight, "packed", None)
    if packed is None or torch.is_autocast_enabled("cpu") or x.dtype != torch.float32:
        return None
    if torch.is_grad_enabled():
        weight.packed = None  # type: ignore[attr-defined]
        return None
    same = packed.version == weight._version and packed.original.data_ptr() == weight.data_ptr()
    return packed.matrix if same and x.numel() >= _LEAST_ROWS * x.size(-1) > 0 else None


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x W^T + b, (..., I) -> (..., O), as ``torch.nn.functional.linear``, with a gradient."""
    packed = _packed(x, weight)
    if packed is not None:
        return _onednn(x, packed, bias)
    if _by_onednn(x, weight):
        return _OneDnnLinear.apply(x, weight, bias)
    if _by_float32(x, weight):
        return RoundedLinear.apply(x, weight, bias)
    if x.dim() < 3:
        return functional.linear(x, weight, bias)
    product_NO = functional.linear(x.reshape(-1, x.size(-1)), weight, bias)
    return _not_a_view(product_NO, (*x.shape[:-1], weight.size(0)))


class Linear(nn.Linear):
    """``torch.nn.Linear`` with the product of :func:`linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def _by_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and prefers_onednn()
    )


def _by_float32(x: Tensor, weight: Tensor) -> bool:
    if x.device.type != "cpu" or multiplies_bfloat16():
        return False
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu") == torch.bfloat16 and x.dtype != torch.float64
    return x.dtype == weight.dtype == torch.bfloat16


def _onednn(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    # An internal operator of torch, therefore looked for in the rules of processor.py and called nowhere else.
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _not_a_view(x: Tensor, shape: Sequence[int]) -> Tensor:
    """In another shape, for ReLU and dropout to overwrite: of a view, autograd makes that copies or an error."""
    return torch.ops.aten._unsafe_view(x, shape)


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        ctx.save_for_backward(x, weight)
        output = _onednn(x, weight, bias)
        return _not_a_view(output, output.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        rows = gradient.reshape(-1, gradient.size(-1))
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            product(rows, weight.T).view(x.shape) if wants_x else None,
            product(rows.T, x.reshape(-1, x.size(-1)).T) if wants_weight else None,
            rows.sum(dim=0) if wants_bias else None,
        )
