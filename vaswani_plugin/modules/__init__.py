"""The paper's building blocks in plain PyTorch: no fairseq, no registration, one concept per file.

Shapes are written as name suffixes in this whole package:

    B  sentences in the batch        D  d_model
    S  source positions              H  heads (the paper's h)
    T  target positions              K  d_k, width of a query or key of one head
    V  vocabulary, or in q k v: d_v  F  d_ff

A mask is boolean and True where a connection is legal.
"""

from vaswani_plugin.modules.attention import CrossAttention, SelfAttention, attention
from vaswani_plugin.modules.decoder import Decoder
from vaswani_plugin.modules.dropout import Dropout
from vaswani_plugin.modules.embedding import Embedding
from vaswani_plugin.modules.encoder import Encoder
from vaswani_plugin.modules.feed_forward import FeedForward
from vaswani_plugin.modules.layer_config import LayerConfig
from vaswani_plugin.modules.positional_encoding import LearnedPositions, SinusoidalPositions, token_positions
from vaswani_plugin.modules.sublayer import AddAndNorm

__all__ = [
    "AddAndNorm",
    "CrossAttention",
    "Decoder",
    "Dropout",
    "Embedding",
    "Encoder",
    "FeedForward",
    "LayerConfig",
    "LearnedPositions",
    "SelfAttention",
    "SinusoidalPositions",
    "attention",
    "token_positions",
]
