"""Dropout (section 5.4) with cheap random numbers on CPU."""

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 2**16


def random_keep(like: Tensor, dropout: float) -> tuple[Tensor, float]:
    """A boolean mask of ``like``'s shape, True with the returned probability, ``1 - dropout`` to within 2^-17.

    Four 16-bit numbers are cut from each 64-bit draw of torch's generator, several times faster than its Bernoulli
    draws on CPU.
    """
    dropped_levels = round(dropout * _LEVELS)
    draws = torch.empty((like.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    levels = draws.view(torch.int16)[: like.numel()].view(like.shape)
    return levels >= dropped_levels - _LEVELS // 2, 1.0 - dropped_levels / _LEVELS


class _CheapDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropout: float, residual: Optional[Tensor] = None) -> Tensor:
        keep, probability = random_keep(x, dropout)
        ctx.save_for_backward(keep)
        ctx.scale, ctx.dtype = 1.0 / probability, x.dtype
        if residual is None:
            return (x * keep).mul_(ctx.scale)
        if x.dtype != residual.dtype:
            return torch.add(residual, x * keep, alpha=ctx.scale)
        # Where x is, for glibc hardly ever finds a use for the holes that freed tensors leave.
        ctx.mark_dirty(x)
        return torch.add(residual, x.mul_(keep), alpha=ctx.scale, out=x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        (keep,) = ctx.saved_tensors
        of_residual = gradients[0] if ctx.needs_input_grad[2] else None
        return (gradients[0] * keep).mul_(ctx.scale).to(ctx.dtype), None, of_residual


class Dropout(nn.Module):
    """Zeroes each element with probability ``dropout`` in training and scales the others, so that means stay."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """Dropout(x), or residual + Dropout(x), for which training on a CPU overwrites ``x``."""
        if self.training and self.dropout > 0.0:
            if x.device.type == "cpu":
                return _CheapDropout.apply(x, self.dropout, residual)
            x = functional.dropout(x, self.dropout)
        return x if residual is None else residual + x

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"
