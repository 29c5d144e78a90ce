"""Configuration of the model: the paper's hyper-parameters under the paper's names (Table 3)."""

# fairseq builds flags from these dataclasses and reads their types: no postponed annotations, no `int | None`.
from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from vaswani_plugin.errors import UserError
from vaswani_plugin.modules import LayerConfig

SHARING = ["all", "decoder", "none"]


@dataclass
class VaswaniTransformerConfig(FairseqDataclass):
    """The defaults are the base model of Table 3."""

    num_layers: int = field(default=6, metadata={"help": "N, layers in the encoder and in the decoder"})
    d_model: int = field(default=512, metadata={"help": "width of embeddings and of every sub-layer's output"})
    d_ff: int = field(default=2048, metadata={"help": "inner width of the feed-forward network"})
    num_heads: int = field(default=8, metadata={"help": "h, attention heads"})
    d_k: Optional[int] = field(
        default=None, metadata={"help": "width of a query and key of one head (default: d_model / num_heads)"}
    )
    d_v: Optional[int] = field(
        default=None, metadata={"help": "width of a value of one head (default: d_model / num_heads)"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "P_drop, on each sub-layer's output and on the sums of embedding and position"}
    )
    attention_dropout: float = field(default=0.0, metadata={"help": "dropout on attention weights (paper: none)"})
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout after the feed-forward network's ReLU (paper: none)"}
    )
    attention_bias: bool = field(
        default=False, metadata={"help": "add biases to W_Q, W_K, W_V and W_O (not in the paper's formula)"}
    )
    learned_positions: bool = field(
        default=False,
        metadata={
            "help": "learned positional embeddings instead of sinusoids, Table 3 row (E), with "
            "--max-source-positions and --max-target-positions rows"
        },
    )
    share_embeddings: ChoiceEnum(SHARING) = field(  # type: ignore[valid-type]
        default="all",
        metadata={
            "help": "one matrix for source embedding, target embedding and pre-softmax projection (all), "
            "for the latter two (decoder), or three matrices (none)"
        },
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")

    def layer_config(self) -> LayerConfig:
        """The sizes of one layer, with d_k and d_v resolved.

        Raises:
            ValueError: a size or rate that no model can have; the sentence names the flag.
        """
        for name in ("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{_flag(name)} {value} must be at least 1")
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise UserError(f"{_flag(name)} {value} must be at least 0 and below 1")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.num_heads:
            raise UserError(
                f"--d-model {self.d_model} is not divisible by --num-heads {self.num_heads}: "
                "change one of them, or give both --d-k and --d-v"
            )
        return LayerConfig(
            d_model=self.d_model,
            d_ff=self.d_ff,
            num_heads=self.num_heads,
            d_k=self.d_k or self.d_model // self.num_heads,
            d_v=self.d_v or self.d_model // self.num_heads,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            attention_bias=self.attention_bias,
        )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
