"""The model's details: sizes, tying, biases, positions and dropout, of the plugin's model or a stock one."""

import math
from dataclasses import dataclass
from typing import Any, Optional, Union

from vaswani_plugin.audit.configuration import Configuration
from vaswani_plugin.audit.paper import MODELS, Detail, PaperModel, compared
from vaswani_plugin.models.architectures import ARCHITECTURES

_GROUP = "architecture"
# A size, or the encoder's and the decoder's where they differ.
Size = Union[int, float, str]
_ONE_MATRIX = "one matrix"
_SIDES = ("encoder", "decoder")


@dataclass(frozen=True)
class Architecture:
    """What a model is, in the paper's terms."""

    num_layers: Size
    d_model: Size
    d_ff: Size
    num_heads: Size
    d_k: Size
    d_v: Size
    dropout: float
    attention_dropout: float
    activation_dropout: float
    embeddings: str
    biases: str
    positions: str
    normalization: str
    activation: str
    embedding_scale: str


_PAPER_NORMALIZATION = "after each residual"
_PAPER_POSITIONS = "sinusoids, interleaved, from 0"
_PAPER_SCALE = "sqrt(d_model)"


def read_architecture(config: Configuration) -> Optional[Architecture]:
    """None for a model that is no Transformer with encoder and decoder."""
    name = config.name("model")
    if name in ARCHITECTURES or name == "vaswani_transformer":
        return _of_the_plugin(config)
    sizes = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    if config.has("model", *(f"{side}_{size}" for side in _SIDES for size in sizes)):
        return _of_stock_fairseq(config)
    return None


def _of_the_plugin(config: Configuration) -> Architecture:
    def number(name: str, default: Optional[float] = None) -> Any:
        return config.number("model", name, default)

    per_head = number("d_model") // max(number("num_heads"), 1)
    sharing = {"all": _ONE_MATRIX, "decoder": "two: source; target and softmax", "none": "three"}
    return Architecture(
        num_layers=number("num_layers"),
        d_model=number("d_model"),
        d_ff=number("d_ff"),
        num_heads=number("num_heads"),
        d_k=number("d_k", per_head),
        d_v=number("d_v", per_head),
        dropout=number("dropout"),
        attention_dropout=number("attention_dropout", 0.0),
        activation_dropout=number("activation_dropout", 0.0),
        embeddings=sharing.get(config.text("model", "share_embeddings", "all"), "not known"),
        biases="zero at first" if config.flag("model", "attention_bias") else "none",
        positions="learned" if config.flag("model", "learned_positions") else _PAPER_POSITIONS,
        normalization=_PAPER_NORMALIZATION,
        activation="relu",
        embedding_scale=_PAPER_SCALE,
    )


def _of_stock_fairseq(config: Configuration) -> Architecture:
    def number(name: str) -> Any:
        return config.number("model", name)

    def both(name: str) -> Size:
        encoder, decoder = number(f"encoder_{name}"), number(f"decoder_{name}")
        return encoder if encoder == decoder else f"{encoder} / {decoder}"

    def flag(name: str) -> bool:
        return config.flag("model", name)

    heads = [
        number(f"{side}_embed_dim") // max(number(f"{side}_attention_heads"), 1) for side in ("encoder", "decoder")
    ]
    d_head: Size = heads[0] if heads[0] == heads[1] else f"{heads[0]} / {heads[1]}"
    embeddings = "three"
    if flag("share_decoder_input_output_embed"):
        embeddings = "two: source; target and softmax"
    if flag("share_all_embeddings"):
        embeddings = _ONE_MATRIX
    positions = "sines, then cosines, from 2"
    if flag("encoder_learned_pos") or flag("decoder_learned_pos"):
        positions = "learned"
    if flag("no_token_positional_embeddings"):
        positions = "none"
    before = flag("encoder_normalize_before") or flag("decoder_normalize_before")
    return Architecture(
        num_layers=both("layers"),
        d_model=both("embed_dim"),
        d_ff=both("ffn_embed_dim"),
        num_heads=both("attention_heads"),
        d_k=d_head,
        d_v=d_head,
        dropout=number("dropout"),
        attention_dropout=config.number("model", "attention_dropout", 0.0),
        activation_dropout=config.number("model", "activation_dropout", 0.0),
        embeddings=embeddings,
        biases="random at first",
        positions=positions,
        normalization="before each sub-layer" if before else _PAPER_NORMALIZATION,
        activation=config.text("model", "activation_fn", "relu"),
        embedding_scale="1" if flag("no_scale_embedding") else _PAPER_SCALE,
    )


def nearest_model(config: Configuration, architecture: Optional[Architecture]) -> PaperModel:
    """The paper's model, for the target language where it is known, with the fewest differing sizes.

    Where none is nearer by that, the width decides, and between the two big ones dropout.
    """
    language = config.value("task", "target_lang")
    known = language in ("de", "fr")
    candidates = [model for model in MODELS if not known or model.target_language in (None, language)]
    if architecture is None:
        return candidates[0]

    def distance(model: PaperModel) -> tuple[int, float, float]:
        sizes = _sizes(model, architecture)[:-1]
        width = architecture.d_model
        ratio = abs(math.log(max(width, 1) / model.d_model)) if isinstance(width, (int, float)) else 0.0
        return sum(not size.same for size in sizes), ratio, abs(model.dropout - architecture.dropout)

    return min(candidates, key=distance)


def _sizes(paper: PaperModel, this: Architecture) -> list[Detail]:
    def size(name: str, section: str, value: Size, expected: float, why: str, group: str = _GROUP) -> Detail:
        return compared(group, name, section, expected, value, why)

    return [
        size("N", "3.1", this.num_layers, paper.num_layers, "layers of the encoder, and of the decoder"),
        size("d_model", "3.1", this.d_model, paper.d_model, "width of all sub-layers; sets the learning rate too"),
        size("d_ff", "3.3", this.d_ff, paper.d_ff, "inner width; most of a layer's parameters"),
        size("h", "3.2.2", this.num_heads, paper.num_heads, "one head loses 0.9 BLEU, too many lose too (Table 3 A)"),
        size("d_k", "3.2.2", this.d_k, paper.d_head, "smaller keys lose quality (Table 3 B)"),
        size("d_v", "3.2.2", this.d_v, paper.d_head, "width of what a head passes on"),
        size(
            "dropout",
            "6.1" if paper.target_language == "fr" else "5.4",
            this.dropout,
            paper.dropout,
            "without it the base model loses 1.2 BLEU (Table 3 D)",
            "regularisation",
        ),
    ]


def architecture_details(config: Configuration, this: Optional[Architecture], paper: PaperModel) -> list[Detail]:
    """All details of the model; a single one for what is no Transformer."""
    if this is None:
        why = "nothing below says anything about another kind of model"
        name = config.name("model") or "not known"
        return [Detail(_GROUP, "model", "3", "Transformer, encoder and decoder", name, False, why)]
    *sizes, dropout = _sizes(paper, this)

    def is_(name: str, section: str, expected: Any, value: Any, why: str, group: str = _GROUP) -> Detail:
        return compared(group, name, section, expected, value, why)

    return [
        *sizes,
        is_("embeddings", "3.4", _ONE_MATRIX, this.embeddings, "for source, target and softmax; fewer parameters"),
        is_("embedding scale", "3.4", _PAPER_SCALE, this.embedding_scale, "weighs words against positions"),
        is_("attention biases", "3.2.2", "none", this.biases, "the formula has none; 4 vectors in each attention"),
        is_("positions", "3.5", _PAPER_POSITIONS, this.positions, "other frequencies are another encoding"),
        is_("layer norm", "3.1", _PAPER_NORMALIZATION, this.normalization, "before it, training is another one"),
        is_("activation", "3.3", "relu", this.activation, "max(0, x)"),
        dropout,
        is_("attention dropout", "5.4", 0.0, this.attention_dropout, "the paper names none", "regularisation"),
        is_("activation dropout", "5.4", 0.0, this.activation_dropout, "the paper names none", "regularisation"),
    ]
