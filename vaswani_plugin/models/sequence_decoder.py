"""fairseq's incremental decoder interface around the paper's decoder stack."""

from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from vaswani_plugin.models.sequence_encoder import EncoderOutput
from vaswani_plugin.modules import Decoder, Dropout, Embedding, token_positions
from vaswani_plugin.modules.attention import causal_mask
from vaswani_plugin.modules.cache import LayerCache

IncrementalState = dict[str, LayerCache]


class SequenceDecoder(FairseqIncrementalDecoder):
    """Dropout(sqrt(d_model) E[y] + PE) of the target shifted right, the stack, and the pre-softmax projection.

    Args:
        output_embedding: the matrix of the projection; the same object as ``embedding`` where they are shared.
        max_length: longest target with </s>.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        embedding: Embedding,
        output_embedding: Embedding,
        positions: nn.Module,
        stack: Decoder,
        dropout: float,
        max_length: int,
    ) -> None:
        super().__init__(dictionary)
        self.embedding = embedding
        self.output_embedding = output_embedding
        self.positions = positions
        self.stack = stack
        self.dropout = Dropout(dropout)
        self.max_length = max_length
        self.padding_idx: int = dictionary.pad()

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOutput,
        incremental_state: Optional[IncrementalState] = None,
        features_only: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """
        Args:
            prev_output_tokens: (B, T), the target shifted right, </s> first.
            encoder_out: what the encoder returned for the same sentences.
            incremental_state: empty at the first step of decoding; then only the last position is computed.
            features_only: stop before the projection.

        Returns:
            Logits (B, T, V) or features (B, T, D), and {"attn": [(B, T, S)]}: the last layer's attention over the
            source, averaged over heads, which fairseq's alignments read; not computed in training.
        """
        x_BTD, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return (x_BTD if features_only else self.output_layer(x_BTD)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOutput,
        incremental_state: Optional[IncrementalState] = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """As :meth:`forward`, with the stack's output (B, T, D) in place of logits."""
        caches: Optional[list[LayerCache]] = None
        self_mask: Optional[Tensor] = None
        is_token: Optional[Tensor] = None
        # Of the whole prefix also in a single step: its position depends on the tokens before it.
        positions = token_positions(prev_output_tokens, self.padding_idx)
        table = self.positions(positions, like=self.embedding.weight)
        if incremental_state is None:
            self_mask = target_mask(prev_output_tokens, self.padding_idx)
            is_token = between_padding(prev_output_tokens, self.padding_idx)
        else:
            caches = [incremental_state.setdefault(f"layer.{n}", LayerCache()) for n in range(len(self.stack.layers))]
            prev_output_tokens, table = prev_output_tokens[:, -1:], table[:, -1:]
        x_BTD = self.dropout(self.embedding(prev_output_tokens) + table)
        x_BTD, weights_BHTS = self.stack(
            x_BTD,
            encoder_out["memory"],
            self_mask,
            encoder_out["mask"],
            caches,
            need_weights=not self.training,
            is_token_BT=is_token,
        )
        attn = [] if weights_BHTS is None else [weights_BHTS.mean(dim=1)]
        return x_BTD, {"attn": attn}

    def step(
        self,
        newest_BK: Tensor,
        position: int,
        ancestry_BKn: Tensor,
        encoder_out: EncoderOutput,
        caches: list[LayerCache],
    ) -> Tensor:
        """One token more for K hypotheses of each sentence, side by side.

        Args:
            newest_BK: the last token of every hypothesis.
            position: where it stands, from 0 on; the same for all.
            ancestry_BKn: True at the cached positions, those of this step included, that are the hypothesis's own.
            encoder_out: one row per sentence.
            caches: one per layer, shared by the hypotheses of a sentence; extended in place.

        Returns:
            Logits (B, K, V).
        """
        embedded_BKD = self.embedding(newest_BK)
        # The table grows with the length of what it is asked for.
        table = self.positions(torch.arange(position + 1, device=newest_BK.device).unsqueeze(0), like=embedded_BKD)
        x_BKD, _ = self.stack(
            self.dropout(embedded_BKD + table[:, -1:]),
            encoder_out["memory"],
            ancestry_BKn.unsqueeze(1),
            encoder_out["mask"],
            caches,
        )
        return self.output_layer(x_BKD)

    def output_layer(self, features: Tensor) -> Tensor:
        """(B, T, D) -> logits (B, T, V)"""
        return self.output_embedding.project(features)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Keep the rows ``new_order`` of every cached key and value."""
        for cache in incremental_state.values():
            cache.target.reorder(new_order)
            cache.memory.reorder(new_order)

    def max_positions(self) -> int:
        return self.max_length


def between_padding(tokens_BT: Tensor, padding_idx: int) -> Tensor:
    """True from a sentence's first token to its last; a padding symbol in between is a word as any other."""
    is_token = tokens_BT.ne(padding_idx).long()
    return is_token.cumsum(dim=1).gt(0) & is_token.flip(1).cumsum(dim=1).flip(1).gt(0)


def target_mask(tokens_BT: Tensor, padding_idx: int) -> Optional[Tensor]:
    """(B, 1, T, T) causal mask that hides padding on the left; None if there is none.

    Padding on the right needs no mask: it comes after every token, and the causal mask hides it already.
    """
    if tokens_BT[:, :1].ne(padding_idx).all():
        return None
    return causal_mask(tokens_BT.size(1), tokens_BT.device) & between_padding(tokens_BT, padding_idx)[:, None, None, :]
