"""fairseq's encoder interface around the paper's encoder stack."""

from typing import Optional, TypedDict

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from vaswani_plugin.modules import Dropout, Embedding, Encoder, token_positions

UNLIMITED_LENGTH = 10_000
"""Longest sequence, </s> included, where no table of learned positions sets a limit: what memory allows."""


class EncoderOutput(TypedDict):
    """memory: (B, S, D). mask: (B, 1, 1, S), True at tokens, or None if the batch has no padding."""

    memory: Tensor
    mask: Optional[Tensor]


class SequenceEncoder(FairseqEncoder):
    """Dropout(sqrt(d_model) E[x] + PE), then the stack.

    Args:
        max_length: longest source with </s>.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        embedding: Embedding,
        positions: nn.Module,
        stack: Encoder,
        dropout: float,
        max_length: int,
    ) -> None:
        super().__init__(dictionary)
        self.embedding = embedding
        self.positions = positions
        self.stack = stack
        self.dropout = Dropout(dropout)
        self.max_length = max_length
        self.padding_idx: int = dictionary.pad()

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None) -> EncoderOutput:
        """Source ids (B, S), padded on either side -> memory and mask. ``src_lengths`` is fairseq's, not needed."""
        x_BSD = self.embedding(src_tokens)
        x_BSD = x_BSD + self.positions(token_positions(src_tokens, self.padding_idx), like=x_BSD)
        mask = source_mask(src_tokens, self.padding_idx)
        return {"memory": self.stack(self.dropout(x_BSD), mask), "mask": mask}

    def reorder_encoder_out(self, encoder_out: EncoderOutput, new_order: Tensor) -> EncoderOutput:
        """Rows ``new_order`` of every tensor: how fairseq repeats sentences for the beam and drops finished ones."""
        mask = encoder_out["mask"]
        return {
            "memory": encoder_out["memory"].index_select(0, new_order),
            "mask": None if mask is None else mask.index_select(0, new_order),
        }

    def max_positions(self) -> int:
        return self.max_length


def source_mask(tokens_BS: Tensor, padding_idx: int) -> Optional[Tensor]:
    """(B, 1, 1, S), True at tokens; None if there is no padding, which saves the kernels the masking."""
    is_token = tokens_BS.ne(padding_idx)
    return None if is_token.all() else is_token[:, None, None, :]
