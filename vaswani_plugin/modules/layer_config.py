"""Sizes and dropout rates that encoder and decoder layers share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerConfig:
    """One layer's sizes under the paper's letters (Table 3); the defaults are the base model's."""

    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int = 64
    d_v: int = 64
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    attention_bias: bool = False
