"""Token embeddings, shared with the pre-softmax projection (section 3.4)."""

import math

from torch import Tensor, nn

from vaswani_plugin.modules.linear import linear


class Embedding(nn.Embedding):
    """Rows of one (V, D) matrix: times sqrt(d_model) on the way in, unscaled as the pre-softmax projection.

    The matrix starts as N(0, 1/d_model), so that scaled embeddings and logits both have about unit variance.

    Args:
        vocabulary_size: V, rows of the matrix.
        d_model: D, columns of the matrix.
        padding_idx: the row that gets no gradient from inputs.
    """

    def __init__(self, vocabulary_size: int, d_model: int, padding_idx: int) -> None:
        super().__init__(vocabulary_size, d_model, padding_idx=padding_idx)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Token ids (B, T) -> scaled vectors (B, T, D)."""
        return super().forward(tokens_BT) * math.sqrt(self.embedding_dim)

    def project(self, x_BTD: Tensor) -> Tensor:
        """Decoder output (B, T, D) -> logits (B, T, V), by the same matrix and without a bias."""
        return linear(x_BTD, self.weight)
