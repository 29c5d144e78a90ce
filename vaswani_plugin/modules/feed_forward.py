"""Position-wise feed-forward network (section 3.3)."""

from torch import Tensor, nn
from torch.nn import functional

from vaswani_plugin.modules.dropout import Dropout
from vaswani_plugin.modules.linear import Linear


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2: the same two layers at every position.

    Args:
        d_model: width of input and output.
        d_ff: width of the inner layer.
        dropout: on the inner layer's activations; 0 in the paper.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = Linear(d_model, d_ff)
        self.outer = Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        h_BTF = self.dropout(functional.relu(self.inner(x_BTD), inplace=True))
        return self.outer(h_BTF)
