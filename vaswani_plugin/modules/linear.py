"""Products with weight matrices, by the fastest way that torch brings for them on a CPU."""

import functools
import os
import platform
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from vaswani_plugin.errors import UserError

OVERRIDE = "VASWANI_MATRIX_PRODUCTS"
"""The environment variable that chooses: ``torch`` for torch's default (MKL), ``onednn``."""


@functools.lru_cache
def prefers_onednn() -> bool:
    """Whether float32 products on this CPU go through oneDNN.

    On AMD processors with AVX-512 it multiplies more than twice as fast as MKL, which is made for Intel's; on others
    the two are equal or MKL is ahead. A rule and not a measurement, so that a resumed run computes the same numbers.
    """
    choice = os.environ.get(OVERRIDE)
    if choice not in (None, "onednn", "torch"):
        raise UserError(f"{OVERRIDE}={choice} must be torch or onednn")
    available = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if choice is not None:
        return choice == "onednn" and available
    return available and _has_avx512() and _cpuinfo("vendor_id") == "AuthenticAMD"


def _has_avx512() -> bool:
    return "AVX512" in torch.backends.cpu.get_cpu_capability()


def _cpuinfo(name: str) -> str:
    """What Linux says of the first processor under ``name``; nothing elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""


@functools.lru_cache
def multiplies_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices faster than float32's.

    Of x86, those with AMX do, and AMD's with AVX-512. Intel's with AVX-512 alone multiply them at half of float32's
    rate, and without AVX-512 torch emulates it, at a tenth to a hundredth. There the numbers are rounded to bfloat16
    as everywhere, and float32 products are taken of them: the same values but for the order of the sums.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    flags = _cpuinfo("flags").split()
    return _has_avx512() and (
        "amx_bf16" in flags or ("avx512_bf16" in flags and _cpuinfo("vendor_id") == "AuthenticAMD")
    )


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


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x W^T + b, (..., I) -> (..., O), as ``torch.nn.functional.linear``, with a gradient."""
    if _by_onednn(x, weight):
        return _OneDnnLinear.apply(x, weight, bias)
    if _by_float32(x, weight):
        return _RoundedLinear.apply(x, weight, bias)
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
    # An internal operator of torch, therefore looked for in prefers_onednn and called nowhere else.
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


class _RoundedLinear(torch.autograd.Function):
    """x W^T + b of numbers rounded to bfloat16, each result rounded to bfloat16: what a bfloat16 product computes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        rounded = x.bfloat16()
        ctx.save_for_backward(rounded, weight)
        ctx.dtypes = (x.dtype, None if bias is None else bias.dtype)
        output = rounded.new_empty(*x.shape[:-1], weight.size(0))
        _rounded_product(rounded, _rounded(weight).T, None if bias is None else _rounded(bias), output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        rounded, weight = ctx.saved_tensors
        x_dtype, bias_dtype = ctx.dtypes
        gradient = gradients[0]
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_x = torch.empty_like(rounded, dtype=x_dtype)
            _rounded_product(gradient, _rounded(weight), None, of_x)
        if ctx.needs_input_grad[1]:
            total = weight.new_zeros(weight.shape, dtype=torch.float32)
            for rows, inputs in _parts(gradient, rounded):
                total.addmm_(rows.float().T, inputs.float())
            of_weight = _rounded(total).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            rows = gradient.reshape(-1, gradient.size(-1))
            of_bias = _rounded(rows.sum(dim=0, dtype=torch.float32)).to(bias_dtype)
        return of_x, of_weight, of_bias


_ROWS = 512
"""Rows that are in float32 at a time: whole matrices would take twice the memory that rounding them saves."""


def _rounded_product(a: Tensor, b_KM: Tensor, bias_M: Optional[Tensor], out: Tensor) -> None:
    """out = a b + bias with ``b`` and ``bias`` in float32, each result rounded to bfloat16; (..., K) -> (..., M)."""
    with torch.autocast("cpu", enabled=False):
        for rows, results in _parts(a, out):
            exact = rows.float() @ b_KM if bias_M is None else torch.addmm(bias_M, rows.float(), b_KM)
            results.copy_(exact.bfloat16())


def _parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """:data:`_ROWS` rows of each at a time."""
    return zip(*(tensor.reshape(-1, tensor.size(-1)).split(_ROWS) for tensor in tensors))


def _rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()
