"""Who is compared, by kind of work, and the sizes of the models."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Size:
    """Of a model and of its batches.

    Attributes:
        length: tokens of a sentence, </s> not counted, on both sides.
        train_tokens: target tokens of an update.
    """

    arch: str
    vocabulary: int
    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    length: int
    train_tokens: int


SIZES = {
    "tiny": Size("vaswani_tiny", 8_000, 4, 128, 256, 4, 0.3, 16, 3_500),
    "base": Size("vaswani_base", 37_000, 6, 512, 2048, 8, 0.1, 29, 1_536),
    "big": Size("vaswani_big", 37_000, 6, 1024, 4096, 16, 0.3, 29, 1_536),
}


@dataclass
class Turn:
    """What a peer does when it is its turn.

    Attributes:
        run: the work.
        unit: what one repetition of it is called.
        counts: how many of what one repetition handles.
        repeats: repetitions in one ``run``.
        about: anything else to tell once.
    """

    run: Callable[[], None]
    unit: str
    counts: dict[str, float]
    repeats: int = 1
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """A ``module:function`` that builds the peer's :class:`Turn` from the worker's task, and the package it needs."""

    name: str
    builder: str
    package: str = "torch"

    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def build(self, task: dict[str, Any]) -> Turn:
        module, function = self.builder.split(":")
        return getattr(importlib.import_module(f"benchmarks.{module}"), function)(task)


PEERS = {
    "train": (
        Peer("plugin", "train:plugin"),
        Peer("stock", "train:stock"),
        Peer("stock-bf16", "train:stock_bf16"),
        Peer("torch", "train:torch_transformer"),
    ),
    "decode": (
        Peer("plugin", "decode:plugin"),
        Peer("stock", "decode:stock"),
        Peer("ctranslate2", "decode:ctranslate2_float32", "ctranslate2"),
        Peer("ctranslate2-int8", "decode:ctranslate2_int8", "ctranslate2"),
    ),
    "loss": (Peer("plugin", "loss:plugin"), Peer("stock", "loss:stock")),
    "data": (Peer("plugin", "data:plugin"), Peer("line-by-line", "data:line_by_line")),
}


def peer_named(work: str, name: str) -> Peer:
    return next(peer for peer in PEERS[work] if peer.name == name)
