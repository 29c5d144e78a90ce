"""The decoder stack (section 3.1, right half of figure 1)."""

from typing import Optional

from torch import Tensor, nn

from vaswani_plugin.modules.attention import CrossAttention, SelfAttention
from vaswani_plugin.modules.cache import LayerCache
from vaswani_plugin.modules.feed_forward import FeedForward
from vaswani_plugin.modules.layer_config import LayerConfig
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
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Returns (B, T, D) and, if asked for, the weights over the memory (B, H, T, S)."""
        # One new position may see everything cached; a whole sequence is causal unless a mask says it all.
        causal = cache is None and self_mask is None
        target, source = (None, None) if cache is None else (cache.target, cache.memory)
        attended_BTD, _ = self.self_attention(x_BTD, self_mask, causal, target)
        x_BTD = self.after_self_attention(x_BTD, attended_BTD)
        attended_BTD, weights_BHTS = self.cross_attention(x_BTD, memory_BSD, memory_mask, source, need_weights)
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

        Returns:
            (B, T, D), and the last layer's weights over the memory (B, H, T, S) or None.
        """
        weights_BHTS: Optional[Tensor] = None
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            cache = None if caches is None else caches[index]
            x_BTD, weights_BHTS = layer(
                x_BTD, memory_BSD, self_mask, memory_mask, cache, need_weights and index == last
            )
        return x_BTD, weights_BHTS
