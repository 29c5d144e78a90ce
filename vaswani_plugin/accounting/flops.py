"""Floating-point operations of training, counted in matrix products.

A product and its sum are 2 operations. Counted are the products with weight matrices and, in attention, of queries
with keys and of weights with values, over all positions, those a causal mask hides included; not counted are
softmax, normalisation, activations, dropout, the optimiser and the look-up of embeddings. A backward pass has twice
the products of its forward pass.
"""

from dataclasses import dataclass

from vaswani_plugin.models.config import VaswaniTransformerConfig

RULE = (
    "2 per multiply-add of a matrix product; attention over all positions, a causal mask's too; an update is forward "
    "and backward, 3 times the forward pass; nothing else is counted"
)
PAPER_TOKENS_PER_UPDATE = 25_000
"""Source tokens, and as many target tokens, of a batch (section 5.1)."""


@dataclass(frozen=True)
class ForwardFlops:
    """Operations of one forward pass, per token."""

    encoder_per_source_token: int
    decoder_per_target_token: int
    pre_softmax_per_target_token: int

    def update(self, source_tokens: int, target_tokens: int) -> int:
        """Operations of an update, forward and backward, on that many tokens."""
        decoder = self.decoder_per_target_token + self.pre_softmax_per_target_token
        return 3 * (source_tokens * self.encoder_per_source_token + target_tokens * decoder)


def forward_flops(
    config: VaswaniTransformerConfig, vocabulary: int, source_length: int, target_length: int
) -> ForwardFlops:
    """Operations per token in sentence pairs of these lengths, </s> counted.

    The keys and values of the decoder's attention to the source are computed at source tokens, and counted there.
    """
    layer = config.layer_config()
    keys, values = layer.num_heads * layer.d_k, layer.num_heads * layer.d_v
    projections = 2 * layer.d_model * (2 * keys + 2 * values)
    at_memory = 2 * layer.d_model * (keys + values)
    per_key_position = 2 * (keys + values)
    feed_forward = 4 * layer.d_model * layer.d_ff
    encoder_layer = projections + source_length * per_key_position + feed_forward + at_memory
    decoder_layer = (
        projections
        + target_length * per_key_position
        + (projections - at_memory)
        + source_length * per_key_position
        + feed_forward
    )
    return ForwardFlops(
        encoder_per_source_token=config.num_layers * encoder_layer,
        decoder_per_target_token=config.num_layers * decoder_layer,
        pre_softmax_per_target_token=2 * layer.d_model * vocabulary,
    )


def training_flops(
    config: VaswaniTransformerConfig,
    vocabulary: int,
    updates: int,
    tokens_per_update: int = PAPER_TOKENS_PER_UPDATE,
    length: int = 30,
) -> int:
    """Operations of a whole training.

    Args:
        tokens_per_update: of the source, and as many of the target.
        length: of the sentences on both sides, </s> counted.
    """
    return updates * forward_flops(config, vocabulary, length, length).update(tokens_per_update, tokens_per_update)
