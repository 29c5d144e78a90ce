"""The tokens of a padded batch side by side, so that what works on single positions skips the padding."""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor

_LEAST_SAVING = 1 / 32
"""Share of padding below which moving the tokens costs more than it saves."""


@dataclass(frozen=True)
class Packing:
    """Where the N tokens of a batch (B, T) are.

    Attributes:
        rows_N: each token's place in the flattened batch.
        tokens_BT: each place's token; padding stands for the nearest token of its own sentence.
    """

    rows_N: Tensor
    tokens_BT: Tensor

    @staticmethod
    def of(is_token_BT: Tensor) -> "Optional[Packing]":
        """None where there is too little padding, and on a GPU, which would have to be waited for."""
        if is_token_BT.device.type != "cpu":
            return None
        rows_N = is_token_BT.flatten().nonzero().squeeze(1)
        count, places = rows_N.numel(), is_token_BT.numel()
        if count == 0 or places - count < _LEAST_SAVING * places:
            return None
        counts_B1 = is_token_BT.sum(dim=1, keepdim=True)
        firsts_B1 = counts_B1.cumsum(dim=0) - counts_B1
        tokens_BT = firsts_B1 + (is_token_BT.cumsum(dim=1) - 1).clamp_(min=0)
        # A sentence of padding alone has no token; any other's will do.
        return Packing(rows_N, tokens_BT.clamp_(max=count - 1))

    def pack(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) -> (1, N, D). The gradient of padding is 0."""
        return _Pack.apply(x_BTD, self)

    def unpack(self, x_1ND: Tensor) -> Tensor:
        """(1, N, D) -> (B, T, D), where padding repeats a token of its sentence. Its gradient is dropped."""
        return _Unpack.apply(x_1ND, self)


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BTD: Tensor, packing: Packing) -> Tensor:
        ctx.packing, ctx.shape = packing, x_BTD.shape
        return x_BTD.flatten(0, 1).index_select(0, packing.rows_N).unsqueeze(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        flat = gradients[0].new_zeros(ctx.shape).flatten(0, 1)
        return flat.index_copy_(0, ctx.packing.rows_N, gradients[0].squeeze(0)).view(ctx.shape), None


class _Unpack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_1ND: Tensor, packing: Packing) -> Tensor:
        ctx.packing = packing
        tokens_BT = packing.tokens_BT
        return x_1ND.squeeze(0).index_select(0, tokens_BT.flatten()).view(*tokens_BT.shape, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        return gradients[0].flatten(0, 1).index_select(0, ctx.packing.rows_N).unsqueeze(0), None
