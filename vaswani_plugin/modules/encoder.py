"""The encoder stack (section 3.1, left half of figure 1)."""

from typing import Optional

from torch import Tensor, nn

from vaswani_plugin.modules.attention import SelfAttention
from vaswani_plugin.modules.feed_forward import FeedForward
from vaswani_plugin.modules.layer_config import LayerConfig
from vaswani_plugin.modules.packing import Packing
from vaswani_plugin.modules.sublayer import AddAndNorm


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with residual and normalisation."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.after_self_attention = AddAndNorm(config.d_model, config.dropout)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation_dropout)
        self.after_feed_forward = AddAndNorm(config.d_model, config.dropout)

    def forward(self, x_BSD: Tensor, mask: Optional[Tensor], packing: Optional[Packing]) -> Tensor:
        """(B, S, D) -> (B, S, D), or packed (1, N, D) -> (1, N, D)"""
        attended_BSD, _ = self.self_attention(x_BSD, mask, packing=packing)
        x_BSD = self.after_self_attention(x_BSD, attended_BSD)
        return self.after_feed_forward(x_BSD, self.feed_forward(x_BSD))


class Encoder(nn.Module):
    """N identical layers, with no normalisation after the last."""

    def __init__(self, num_layers: int, config: LayerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(num_layers))

    def forward(self, x_BSD: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """
        Args:
            x_BSD: embedded source.
            mask: (B, 1, 1, S), True at tokens and False at padding; None if there is no padding.

        Returns:
            The memory (B, S, D) that the decoder reads; padding may repeat a token's output.
        """
        packing = None if mask is None else Packing.of(mask[:, 0, 0])
        x = x_BSD if packing is None else packing.pack(x_BSD)
        for layer in self.layers:
            x = layer(x, mask, packing)
        return x if packing is None else packing.unpack(x)
