"""Whether a checkpoint's weights are those of the model that is to take them up."""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from vaswani_plugin.errors import UserError

_SOURCE, _TARGET = "encoder.embedding.weight", "decoder.embedding.weight"
_OUTPUT = "decoder.output_embedding.weight"
_QUERY = "decoder.stack.layers.0.cross_attention.query.weight"
_VALUE = "decoder.stack.layers.0.cross_attention.output.weight"
_INNER = "encoder.stack.layers.0.feed_forward.inner.weight"
_SHARING = ["none", "decoder", "all"]
"""From three matrices to one."""


class CheckpointMismatch(UserError, RuntimeError):
    """The weights are another model's; the message is one sentence that names both sides.

    It is of torch's kind too, which fairseq's trainer waits for to add the file's name.
    """


def record_what_weights_do_not_show(
    model: Any, state_dict: Mapping[str, Tensor], prefix: str, local_metadata: dict[str, Any]
) -> None:
    """Hook of ``state_dict``: note, beside the weights, what no weight's shape tells.

    torch keeps such notes with an ordered dictionary of weights, and so in the file. A plain dictionary has none, nor
    what fairseq hands from the first worker to the others; there, only shapes are compared.
    """
    local_metadata["num_heads"] = model.cfg.num_heads
    local_metadata["dictionaries"] = [fingerprint(model.encoder.dictionary), fingerprint(model.decoder.dictionary)]


def fingerprint(dictionary: Dictionary) -> str:
    """Equal for dictionaries of the same entries in the same order, whatever their counts."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8", "surrogatepass")).hexdigest()


def check_match(model: Any, checkpoint: Mapping[str, Tensor]) -> None:
    """Compare a checkpoint's weights with a model's.

    Raises:
        CheckpointMismatch: sizes, heads, shared matrices or dictionaries differ, or it is no model of this kind.
    """
    for name in (_SOURCE, _TARGET, _OUTPUT, _QUERY, _VALUE, _INNER):
        if name not in checkpoint:
            raise CheckpointMismatch(
                f"the checkpoint has no {name}, which vaswani_transformer has, but weights such as "
                f"{next(iter(checkpoint), 'none')}: give the --arch that it was trained with"
            )
    own = model.state_dict()
    theirs, ours = _flags(checkpoint, model.cfg.num_heads), _flags(own, model.cfg.num_heads)
    theirs["--share-embeddings"], ours["--share-embeddings"] = _sharing(checkpoint), str(model.cfg.share_embeddings)
    if _SHARING.index(theirs["--share-embeddings"]) > _SHARING.index(ours["--share-embeddings"]):
        del ours["--share-embeddings"]  # what was one matrix may go on as several
    differing = [flag for flag in ours if ours[flag] != theirs[flag]]
    sides = [[f"{flag} {flags[flag]}" for flag in differing] for flags in (theirs, ours)]
    advice = ["give the checkpoint's values"] if differing else []

    sizes = [(len(weights[_SOURCE]), len(weights[_TARGET])) for weights in (checkpoint, own)]
    notes = [_notes(weights).get("dictionaries") for weights in (checkpoint, own)]
    if sizes[0] != sizes[1] or (notes[0] and notes[0] != notes[1]):
        other = "other " if sizes[0] == sizes[1] else ""
        for side, (source, target), which in zip(sides, sizes, ("", other)):
            side.append(f"dictionaries of {source} and {target} {which}entries")
        advice.append("binarise with its dictionary (fairseq-preprocess --srcdict, --tgtdict)")
    if advice:
        has, asked = map(", ".join, sides)
        raise CheckpointMismatch(f"the checkpoint has {has}, this run {asked}: {', '.join(advice)}")


def _notes(weights: Mapping[str, Tensor]) -> Mapping[str, Any]:
    return getattr(weights, "_metadata", {}).get("", {})


def _flags(weights: Mapping[str, Tensor], num_heads: int) -> dict[str, Any]:
    """The flags that weights were made with; ``num_heads`` stands in where nothing was noted."""
    d_model = weights[_SOURCE].size(1)
    heads = _notes(weights).get("num_heads", num_heads)

    def of_one_head(width: int) -> str:
        return "d_model / heads" if width == d_model else f"{width / heads:g}"

    def rows(side: str) -> str:
        return str(len(weights[name])) if (name := f"{side}.positions.weight") in weights else "unlimited"

    return {
        "--num-layers": len({name.split(".")[3] for name in weights if name.startswith("encoder.stack.layers.")}),
        "--d-model": d_model,
        "--d-ff": weights[_INNER].size(0),
        "--num-heads": heads,
        "--d-k": of_one_head(weights[_QUERY].size(0)),
        "--d-v": of_one_head(weights[_VALUE].size(1)),
        "--attention-bias": _QUERY.replace("weight", "bias") in weights,
        "--learned-positions": "encoder.positions.weight" in weights,
        "--max-source-positions": rows("encoder"),
        "--max-target-positions": rows("decoder"),
    }


def _sharing(weights: Mapping[str, Tensor]) -> str:
    if not _same(weights[_TARGET], weights[_OUTPUT]):
        return "none"
    return "all" if _same(weights[_SOURCE], weights[_TARGET]) else "decoder"


def _same(one: Tensor, other: Tensor) -> bool:
    # NaN is the same as NaN here: that a model has diverged is told where it is used.
    return one.shape == other.shape and torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True)
