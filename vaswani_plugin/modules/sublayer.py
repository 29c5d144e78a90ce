"""Residual connection and layer normalisation around each sub-layer (sections 3.1 and 5.4)."""

from torch import Tensor, nn

from vaswani_plugin.modules.dropout import Dropout

EPSILON = 1e-6  # the paper gives none; its released code used this one


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): "post-norm", dropout before the sum, nothing after the stack."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=EPSILON)
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor, sublayer_output_BTD: Tensor) -> Tensor:
        """(B, T, D), (B, T, D) -> (B, T, D); training on a CPU overwrites the sub-layer's output."""
        return self.norm(self.dropout(sublayer_output_BTD, residual=x_BTD))
