"""Translations of the test set beside their references, and the worst of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from vaswani_plugin.data.text_files import raw_lines


@dataclass(frozen=True)
class Sample:
    """One sentence of the test set; ``chrf`` is sacreBLEU's for the sentence, 0 to 100."""

    number: int
    source: str
    reference: str
    translation: str
    chrf: float


def read_samples(path: Path) -> list[Sample]:
    """What fairseq-generate wrote, in the order of the test set; sentences that lack a part are left out.

    The translation is the detokenised one where there is one, and the first, which is the best, of several.
    """
    parts: dict[str, dict[int, str]] = {kind: {} for kind in "STDH"}
    for raw in raw_lines(path):
        kind, dash, rest = raw[:1].decode("latin-1"), raw[1:2], raw[2:].decode("utf-8", "replace").split("\t")
        if dash == b"-" and kind in parts and rest[0].isdigit() and len(rest) >= (3 if kind in "DH" else 2):
            parts[kind].setdefault(int(rest[0]), plain(rest[-1]))
    translations = parts["D"] or parts["H"]
    metric = CHRF()
    return [
        Sample(
            number,
            parts["S"][number],
            parts["T"][number],
            translations[number],
            metric.sentence_score(translations[number], [parts["T"][number]]).score,
        )
        for number in sorted(translations)
        if number in parts["S"] and number in parts["T"]
    ]


def plain(text: str) -> str:
    """SentencePiece's pieces joined, where the output was left in pieces."""
    return text.replace(" ", "").replace("\u2581", " ").strip() if "\u2581" in text else text


def spread(samples: Sequence[Sample], count: int) -> list[Sample]:
    """``count`` samples evenly over the test set: always the same ones, and none of them chosen."""
    if len(samples) <= count:
        return list(samples)
    return [samples[(2 * place + 1) * len(samples) // (2 * count)] for place in range(count)]


def worst(samples: Sequence[Sample], count: int) -> list[Sample]:
    """The lowest chrF first."""
    return sorted(samples, key=lambda sample: (sample.chrf, sample.number))[:count]
