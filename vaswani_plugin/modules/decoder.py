"""The decoder stack (section 3.1, right half of figure 1)."""

from typing import Optional

from torch import Tensor, nn

from vaswani_plugin.modules.attention import CrossAttention, SelfAttention
from vaswani_plugin.modules.cache import LayerCache
from vaswani_plugin.modules.feed_forward import FeedForward
from vaswani_plugin.modules.layer_config import LayerConfig
from vaswani_plugin.modules.packing import Packing
from vaswani_plugin.modules.sublayer import AddAndNorm


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the memory, feed-forward, each with residual and normalisation."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.after_self_attention = AddAndNorm(config.d_model, config.dropout)
        self.cross_attention = CrossAttention(config)
        self.after_cross_attention = AddAndNorm(config.d_model, config.dropout)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation_dropout)
        self.after_feed_forward = AddAndNorm(config.d_model, config.dropout)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        self_mask: Optional[Tensor],
        memory_mask: Optional[Tensor],
        cache: Optional[LayerCache],
        need_weights: bool,
        packing: Optional[Packing],
        memory_packing: Optional[Packing],
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Returns (B, T, D), or (1, N, D) if packed, and, if asked for, the weights over the memory (B, H, T, S)."""
        # One new position may see everything cached; a whole sequence is causal unless a mask says it all.
        causal = cache is None and self_mask is None
        target, source = (None, None) if cache is None else (cache.target, cache.memory)
        attended_BTD, _ = self.self_attention(x_BTD, self_mask, causal, target, packing=packing)
        x_BTD = self.after_self_attention(x_BTD, attended_BTD)
        attended_BTD, weights_BHTS = self.cross_attention(
            x_BTD, memory_BSD, memory_mask, source, need_weights, packing, memory_packing
        )
        x_BTD = self.after_cross_attention(x_BTD, attended_BTD)
        return self.after_feed_forward(x_BTD, self.feed_forward(x_BTD)), weights_BHTS


class Decoder(nn.Module):
    """N identical layers, with no normalisation after the last."""

    def __init__(self, num_layers: int, config: LayerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(num_layers))

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        self_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        caches: Optional[list[LayerCache]] = None,
        need_weights: bool = False,
        is_token_BT: Optional[Tensor] = None,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """
        Args:
            x_BTD: embedded target, shifted right; with ``caches`` its newest position alone: T = 1, or several
                hypotheses of each sentence side by side.
            memory_BSD: the encoder's output.
            self_mask: (B, 1, T, T) causal mask and padding together; None means causal without padding. With
                ``caches``: which of the cached positions each hypothesis sees; None means all.
            memory_mask: (B, 1, 1, S), True at source tokens; None if the source has no padding.
            caches: one per layer, empty before the first step, extended in place.
            need_weights: also return the last layer's attention weights.
            is_token_BT: False at the target's padding, for which then nothing is computed; it repeats a token's output.

        Returns:
            (B, T, D), and the last layer's weights over the memory (B, H, T, S) or None.
        """
        weights_BHTS: Optional[Tensor] = None
        last = len(self.layers) - 1
        packing = None if is_token_BT is None else Packing.of(is_token_BT)
        memory_packing = None
        if caches is None and memory_mask is not None:
            memory_packing = Packing.of(memory_mask[:, 0, 0])
        x = x_BTD if packing is None else packing.pack(x_BTD)
        memory = memory_BSD if memory_packing is None else memory_packing.pack(memory_BSD)
        for index, layer in enumerate(self.layers):
            cache = None if caches is None else caches[index]
            x, weights_BHTS = layer(
                x, memory, self_mask, memory_mask, cache, need_weights and index == last, packing, memory_packing
            )
        return x if packing is None else packing.unpack(x), weights_BHTS
