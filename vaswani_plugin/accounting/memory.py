"""Memory of decoding and of training, in bytes."""

from dataclasses import dataclass

from vaswani_plugin.accounting.parameters import parameters_by_part
from vaswani_plugin.models.config import VaswaniTransformerConfig

_FLOAT32 = 4


def cache_bytes(
    config: VaswaniTransformerConfig, source_length: int, target_length: int, beam: int = 4, item: int = _FLOAT32
) -> int:
    """Keys and values that decoding keeps for one sentence when ``target_length`` tokens stand in every hypothesis.

    Those of the source are kept once per sentence, those of the target for each hypothesis. The memory doubles when
    it is full, so that up to twice the target's part is allocated.

    Args:
        item: bytes of a number, 4 in float32 and 2 in half precision.
    """
    layer = config.layer_config()
    position = layer.num_heads * (layer.d_k + layer.d_v) * item
    return config.num_layers * position * (source_length + beam * target_length)


@dataclass(frozen=True)
class UpdateBytes:
    """Memory of one update in float32 with Adam, without the temporary memory of single operations."""

    weights: int
    gradients: int
    adam_moments: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.adam_moments + self.activations


def update_bytes(
    config: VaswaniTransformerConfig, vocabulary: int, source_tokens: int, target_tokens: int
) -> UpdateBytes:
    """Memory of an update whose tokens are in one batch; with --update-freq N the activations are an Nth."""
    weights = _FLOAT32 * sum(parameters_by_part(config, vocabulary).values())
    activations = activation_bytes(config, source_tokens, target_tokens)
    return UpdateBytes(weights, weights, 2 * weights, activations)


def activation_bytes(config: VaswaniTransformerConfig, source_tokens: int, target_tokens: int) -> int:
    """What the forward pass keeps for the backward pass, in float32.

    Attention is the fused kernel's, which keeps its inputs, its output and one number per head and query; dropout
    keeps one byte per element; the logits are never all in memory. Not counted are the attention weights, which are
    kept where that kernel cannot be used: with dropout on them, and on CPU with d_k other than d_v.
    """
    layer = config.layer_config()
    d_model, heads = layer.d_model, layer.num_heads
    keys, values = heads * layer.d_k, heads * layer.d_v
    # Input of the normalisation with its mean and deviation, output, and mask of the dropout before it.
    add_and_norm = _FLOAT32 * (2 * d_model + 2) + (d_model if layer.dropout else 0)
    attended = _FLOAT32 * (values + heads)
    feed_forward = _FLOAT32 * layer.d_ff + (layer.d_ff * (_FLOAT32 + 1) if layer.activation_dropout else 0)
    embedded = _FLOAT32 * d_model + (d_model if layer.dropout else 0)
    at_source = _FLOAT32 * (2 * keys + values) + attended + feed_forward + 2 * add_and_norm
    at_target = _FLOAT32 * (3 * keys + values) + 2 * attended + feed_forward + 3 * add_and_norm
    for_cross_attention = _FLOAT32 * (keys + values)
    return source_tokens * (embedded + config.num_layers * (at_source + for_cross_attention)) + target_tokens * (
        embedded + config.num_layers * at_target
    )
