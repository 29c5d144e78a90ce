"""Where each token stands in its sentence (section 3.5)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from vaswani_plugin.errors import UserError


def token_positions(tokens_BT: Tensor, padding_idx: int) -> Tensor:
    """Position of each token among its sentence's tokens, from 0 on, wherever the padding is.

    Padding gets some valid position; it is masked wherever it could matter.
    """
    return (tokens_BT.ne(padding_idx).cumsum(dim=1) - 1).clamp_(min=0)


def sinusoids(length: int, d_model: int) -> Tensor:
    """(length, d_model) in float64: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos(the same)."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = position / 10000.0**exponent
    # An odd d_model has one sine more than cosines.
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


class SinusoidalPositions(nn.Module):
    """Sines and cosines of geometrically growing wavelengths; nothing is learned, any length works."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        # Not a buffer: it is no state (nothing to save), and .half() must not round it a second time.
        self._table = torch.empty(0, d_model)

    def forward(self, positions_BT: Tensor, like: Tensor) -> Tensor:
        """Positions (B, T) -> vectors (B, T, D) in the dtype and on the device of ``like``.

        Computed in float64 and rounded once.
        """
        # A sentence's positions never exceed its padded length, so the size is known without reading the tensor.
        return functional.embedding(positions_BT, self.table(positions_BT.size(1), like))

    def table(self, length: int, like: Tensor) -> Tensor:
        """At least the first ``length`` rows, grown on demand and kept."""
        if self._table.size(0) < length or self._table.dtype != like.dtype or self._table.device != like.device:
            rows = max(length, 2 * self._table.size(0), 256)
            self._table = sinusoids(rows, self.d_model).to(device=like.device, dtype=like.dtype)
        return self._table


class LearnedPositions(nn.Module):
    """A trained vector per position, Table 3 row (E).

    Args:
        max_positions: rows of the table, the longest sequence with its </s>.
    """

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))
        # The paper does not say how they start; the embeddings' distribution keeps both summands comparable.
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, positions_BT: Tensor, like: Tensor) -> Tensor:
        """Positions (B, T) -> vectors (B, T, D).

        Raises:
            ValueError: a position beyond the last row.
        """
        rows = self.weight.size(0)
        # Padding does not count, so a tensor of more than that many columns may still be fine.
        if positions_BT.size(1) > rows and int(positions_BT.max()) >= rows:
            raise UserError(
                f"a sentence has {int(positions_BT.max()) + 1} tokens with </s>, more than the {rows} positions that "
                "the model has learned (--max-source-positions, --max-target-positions): leave it out"
            )
        return functional.embedding(positions_BT, self.weight)
