"""What decoding keeps between its steps, so that each step computes one new position only."""

from dataclasses import dataclass, field
from typing import Optional

import torch
from torch import Tensor


class KeyValueCache:
    """The keys (B, H, n, K) and values (B, H, n, V) of n positions, in memory that doubles when it is full."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Optional[Tensor] = None
        self._values: Optional[Tensor] = None

    def extend(self, k_BHTK: Tensor, v_BHTV: Tensor) -> tuple[Tensor, Tensor]:
        """Add positions; returns all keys and all values so far, as views."""
        end = self.length + k_BHTK.size(2)
        self._keys = self._store(self._keys, k_BHTK, end)
        self._values = self._store(self._values, v_BHTV, end)
        self.length = end
        return self.stored()

    def stored(self) -> tuple[Tensor, Tensor]:
        """All keys and all values so far, as views."""
        assert self._keys is not None
        assert self._values is not None
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def reorder(self, rows: Tensor) -> None:
        """Sentence b becomes the former ``rows[b]``; sentences may repeat."""
        if self.length > 0:
            keys, values = self.stored()
            self._keys, self._values = keys.index_select(0, rows), values.index_select(0, rows)

    def keep(self, rows: Tensor) -> None:
        """As :meth:`reorder` for fewer, different sentences, copying only those that change their place.

        Args:
            rows: a sentence that changes its place comes from behind the last place.
        """
        moved = (rows != torch.arange(rows.numel(), device=rows.device)).nonzero().squeeze(1)
        for tensor in self.stored():
            tensor[moved] = tensor[rows[moved]]
        assert self._keys is not None
        assert self._values is not None
        self._keys, self._values = self._keys[: rows.numel()], self._values[: rows.numel()]

    def _store(self, memory: Optional[Tensor], new: Tensor, end: int) -> Tensor:
        if memory is None:
            return new
        if memory.size(2) < end:
            batch, heads, _, width = memory.shape
            grown = memory.new_empty(batch, heads, max(end, 2 * memory.size(2)), width)
            grown[:, :, : self.length] = memory[:, :, : self.length]
            memory = grown
        memory[:, :, self.length : end] = new
        return memory


@dataclass
class LayerCache:
    """One decoder layer's: of the target so far, and of the memory, which is projected once."""

    target: KeyValueCache = field(default_factory=KeyValueCache)
    memory: KeyValueCache = field(default_factory=KeyValueCache)
