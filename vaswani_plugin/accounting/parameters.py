"""Parameters of a configuration by part, and the figures that the paper prints for them."""

from dataclasses import dataclass
from typing import Optional

from vaswani_plugin.models.config import VaswaniTransformerConfig
from vaswani_plugin.modules import LayerConfig

_MATRICES = {"all": 1, "decoder": 2, "none": 3}


def parameters_by_part(config: VaswaniTransformerConfig, vocabulary: int) -> dict[str, int]:
    """Numbers of trained parameters, a shared matrix counted once.

    Args:
        vocabulary: V, rows of an embedding matrix; the same for both languages.
    """
    layer, layers = config.layer_config(), config.num_layers
    attention, feed_forward = attention_parameters(layer), feed_forward_parameters(layer)
    norm = 2 * layer.d_model
    parts = {
        "embeddings": _MATRICES[str(config.share_embeddings)] * vocabulary * layer.d_model,
        "encoder self-attention": layers * attention,
        "encoder feed-forward": layers * feed_forward,
        "encoder LayerNorm": layers * 2 * norm,
        "decoder self-attention": layers * attention,
        "decoder attention to the source": layers * attention,
        "decoder feed-forward": layers * feed_forward,
        "decoder LayerNorm": layers * 3 * norm,
    }
    if config.learned_positions:
        parts["learned positions"] = (config.max_source_positions + config.max_target_positions) * layer.d_model
    return parts


def attention_parameters(layer: LayerConfig) -> int:
    """W_Q, W_K, W_V and W_O of all heads, with their biases where there are some."""
    keys, values = layer.num_heads * layer.d_k, layer.num_heads * layer.d_v
    biases = 2 * keys + values + layer.d_model if layer.attention_bias else 0
    return layer.d_model * (2 * keys + 2 * values) + biases


def feed_forward_parameters(layer: LayerConfig) -> int:
    """W_1, b_1, W_2 and b_2."""
    return 2 * layer.d_model * layer.d_ff + layer.d_ff + layer.d_model


@dataclass(frozen=True)
class PaperFigure:
    """A number of parameters as Table 3 prints it, in millions; None where it leaves the column blank."""

    row: str
    millions: Optional[int]

    def as_text(self) -> str:
        if self.millions is None:
            return f"{self.row}: column left blank, as for the base model (65 million)"
        return f"{self.row}: {self.millions} million"


PAPER_FIGURES = {
    "vaswani_base": PaperFigure("Table 3, base", 65),
    "vaswani_base_h1": PaperFigure("Table 3, row (A), h = 1", None),
    "vaswani_base_h4": PaperFigure("Table 3, row (A), h = 4", None),
    "vaswani_base_h16": PaperFigure("Table 3, row (A), h = 16", None),
    "vaswani_base_h32": PaperFigure("Table 3, row (A), h = 32", None),
    "vaswani_base_dk16": PaperFigure("Table 3, row (B), d_k = 16", 58),
    "vaswani_base_dk32": PaperFigure("Table 3, row (B), d_k = 32", 60),
    "vaswani_base_n2": PaperFigure("Table 3, row (C), N = 2", 36),
    "vaswani_base_n4": PaperFigure("Table 3, row (C), N = 4", 50),
    "vaswani_base_n8": PaperFigure("Table 3, row (C), N = 8", 80),
    "vaswani_base_d256": PaperFigure("Table 3, row (C), d_model = 256", 28),
    "vaswani_base_d1024": PaperFigure("Table 3, row (C), d_model = 1024", 168),
    "vaswani_base_ff1024": PaperFigure("Table 3, row (C), d_ff = 1024", 53),
    "vaswani_base_ff4096": PaperFigure("Table 3, row (C), d_ff = 4096", 90),
    "vaswani_base_dropout00": PaperFigure("Table 3, row (D), P_drop = 0.0", None),
    "vaswani_base_dropout02": PaperFigure("Table 3, row (D), P_drop = 0.2", None),
    "vaswani_base_learned_positions": PaperFigure("Table 3, row (E)", None),
    "vaswani_big": PaperFigure("Table 3, big", 213),
}
"""Architectures that are in the paper's table; the others are not."""
