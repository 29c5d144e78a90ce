"""A training and its packaged model, stored as version 0.1.0 wrote them (stored/README.md tells how)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import reference
from in_process import call

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.reading import read_checkpoint

STORED = Path(__file__).parent / "stored"
CHECKPOINT, MODEL = STORED / "checkpoint_last.pt", STORED / "model"
VOCABULARY = MODEL / "sentencepiece.bpe.model"
EXPECTED: "dict[str, Any]" = json.loads((STORED / "expected.json").read_text("utf-8"))


def binarise(folder: Path) -> Path:
    """The stored text, cut into pieces and binarised, with its first lines to validate and test; the folder of that."""
    encoded = folder / "encoded"
    texts = [str(STORED / f"train.{language}") for language in ("en", "de")]
    assert cli.main(["encode", "--model", str(VOCABULARY), "--output", str(encoded), *texts]) == 0
    for language in ("en", "de"):
        lines = (encoded / f"train.{language}").read_text("utf-8").split("\n")[:5]
        (encoded / f"few.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--srcdict", MODEL / "dict.en.txt", "--joined-dictionary"),
        *("--trainpref", encoded / "train", "--validpref", encoded / "few", "--testpref", encoded / "few"),
        *("--destdir", folder / "binary"),
    )
    return folder / "binary"


def log_probabilities(checkpoint: Path, source: "list[int]", target: "list[int]") -> np.ndarray:
    """log p of each id of ``target`` by the paper's formulas in NumPy, from nothing but the file's matrices."""
    state = read_checkpoint(checkpoint)
    weights = {name: matrix.double().numpy() for name, matrix in state["model"].items()}
    heads = state["cfg"]["model"]["num_heads"]
    shared = weights["encoder.embedding.weight"]
    layers = [[_layer(weights, f"{side}.stack.layers.0.", heads)] for side in ("encoder", "decoder")]
    scores = reference.logits(source, [2, *target[:-1]], shared, *layers)
    return np.log(reference.softmax(scores))[np.arange(len(target)), target]


def _layer(weights: "dict[str, Any]", prefix: str, heads: int) -> reference.LayerWeights:
    def attention(queries: str, *keys_and_values: str) -> reference.AttentionWeights:
        fused = np.concatenate([weights[f"{prefix}{name}.weight"] for name in (queries, *keys_and_values)])
        split = [np.stack([head.T for head in np.split(part, heads)]) for part in np.split(fused, 3)]
        output = weights[f"{prefix}{queries.split('.')[0]}.output.weight"]
        return reference.AttentionWeights(*split, output.T)

    def norm(name: str) -> reference.NormWeights:
        return reference.NormWeights(*(weights[f"{prefix}{name}.norm.{kind}"] for kind in ("weight", "bias")))

    crossed = f"{prefix}cross_attention.query.weight" in weights
    inner, outer = (f"{prefix}feed_forward.{name}." for name in ("inner", "outer"))
    return reference.LayerWeights(
        attention("self_attention.query_key_value"),
        attention("cross_attention.query", "cross_attention.key_value") if crossed else None,
        reference.FeedForwardWeights(
            weights[f"{inner}weight"].T, weights[f"{inner}bias"], weights[f"{outer}weight"].T, weights[f"{outer}bias"]
        ),
        [
            norm("after_self_attention"),
            *([norm("after_cross_attention")] if crossed else []),
            norm("after_feed_forward"),
        ],
    )
