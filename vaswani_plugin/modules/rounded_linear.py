"""Products of numbers rounded to bfloat16, by way of float32: for CPUs without a faster way."""

from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch import Tensor


class RoundedLinear(torch.autograd.Function):
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
