"""Products of 8-bit integers, for translating on a CPU; they have no gradient."""

import functools
from typing import Any, Optional

import torch
from torch import Tensor, nn

_SMALLEST = 1e-30
"""In the place of 0 as the largest number of a row of zeros."""


def available() -> bool:
    """Whether this torch has the operator: an internal one, looked for here and called nowhere but below."""
    return hasattr(torch.ops.onednn, "qlinear_pointwise") and hasattr(torch.ops.onednn, "qlinear_prepack")


@functools.lru_cache
def largest_integer() -> int:
    """Integers are from minus this to this: 127, or 90 on processors without VNNI.

    Those add two neighbouring products in 16 bits and clip what is larger, without a word: with the inputs moved to 1
    to 181, which the kernel wants unsigned, 2 * 181 * 90 just fits.
    """
    ones = torch.ones(64, 64, dtype=torch.int8)
    matrix = _PackedMatrix(ones * 127, torch.ones(64), move=0)
    clipped = matrix.product(ones.to(torch.uint8) * 255) != 64 * 127 * 255
    return 90 if clipped.any() else 127


class _PackedMatrix:
    """A matrix of integers (O, I) in the order that the kernel reads.

    Args:
        move: what the inputs were moved by to have no sign.
    """

    def __init__(self, integers_OI: Tensor, scale_O: Tensor, move: int) -> None:
        self.packed = torch.ops.onednn.qlinear_prepack(integers_OI, None)
        self.scale_O = scale_O
        self.zeros_O = torch.zeros_like(scale_O, dtype=torch.int32)
        # What the move adds to every sum.
        self.moved_O = -move * integers_OI.sum(dim=1) * scale_O

    def product(self, moved: Tensor) -> Tensor:
        """Moved inputs, uint8 (..., I) -> float32 (..., O), in terms of the matrix's scales."""
        none: Any = ("none", [], "")
        return torch.ops.onednn.qlinear_pointwise(
            moved, 1.0, 0, self.packed, self.scale_O, self.zeros_O, self.moved_O, 1.0, 0, torch.float32, *none
        )


def largest_of_rows(x: Tensor) -> Tensor:
    """(..., I) -> (..., 1), the largest absolute value; NaN if there is a NaN."""
    return x.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST)


class Int8Linear(nn.Module):
    """x W^T + b with a scale for each row of W and, found anew in each call, for each row of x.

    A row of x is a position of one sentence, so that a sentence's result does not depend on its batch.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Optional[Tensor] = None) -> None:
        super().__init__()
        weight_OI = weight_OI.detach()
        self.range = largest_integer()
        # A row of zeros has some scale; that of a row with a NaN is NaN, so that its results are.
        scale_O1 = largest_of_rows(weight_OI) / self.range
        integers_OI = (weight_OI / scale_O1).round_().to(torch.int8)
        self.matrix = _PackedMatrix(integers_OI, scale_O1.squeeze(1), self.range + 1)
        self.bias = None if bias_O is None else bias_O.detach()

    def forward(self, x: Tensor) -> Tensor:
        """float32 (..., I) -> float32 (..., O)"""
        largest = largest_of_rows(x)
        # Cutting off the fraction then rounds.
        moved = (x * (self.range / largest)).add_(self.range + 1.5).to(torch.uint8)
        product = self.matrix.product(moved)
        scale = largest.div_(self.range)
        return product.mul_(scale) if self.bias is None else torch.addcmul(self.bias, product, scale)


class Int8Projection(Int8Linear):
    """In the place of an embedding as the pre-softmax projection."""

    def project(self, x_BTD: Tensor) -> Tensor:
        """Decoder output (B, T, D) -> logits (B, T, V)"""
        return self(x_BTD)
