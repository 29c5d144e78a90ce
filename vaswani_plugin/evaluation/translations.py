r"""Translations to be scored: plain text, or what fairseq-generate and fairseq-interactive print.

The tools print, for each sentence in the order of their batches: ``S-ID\tsource``, ``T-ID\treference``,
``H-ID\tscore\tpieces``, ``D-ID\tscore\ttext`` and ``P-ID\tprobabilities``, with ``H`` to ``P`` once for each of the
n best, among lines of log.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from vaswani_plugin.data.text_files import text_lines
from vaswani_plugin.errors import UserError

_SCORE = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)"
_HYPOTHESIS = re.compile(rf"([DH])-(\d+)\t({_SCORE})(?:\t(.*))?", re.DOTALL)
_SOURCE = re.compile(r"S-(\d+)\t")
# "@@ " joins byte pairs (subword-nmt); U+2581 begins words (SentencePiece).
_PIECES = re.compile("@@(?: |$)|\u2581")
_SHOWN = 5


def read_translations(path: str | Path, expected: int) -> list[str]:
    """Reads one translation for each of ``expected`` reference lines, in the order of the test set.

    Tells generate output and plain text apart by itself. Of generate output it takes the detokenised ``D-`` lines,
    or the ``H-`` lines where there are none, and of several for one sentence the one with the best score. Missing or
    doubled sentences, another number of lines, and text that is still cut into pieces are ``ValueError``s.
    """
    lines = [line.removesuffix("\r") for line in text_lines(path)]
    output = _parse_generate_output(lines)
    name = "standard input" if str(path) == "-" else str(path)
    if output is None:
        if len(lines) != expected:
            raise UserError(
                f"{name} has {len(lines)} lines but the reference has {expected}; "
                "both need one line for each sentence of the same test set"
            )
        refuse_pieces(name, lines)
        return lines
    translations = output.in_order(name, expected)
    refuse_pieces(name, translations, unit="sentence", first=0)
    return translations


def refuse_pieces(name: str, lines: Iterable[str], *, unit: str = "line", first: int = 1) -> None:
    """Refuses text that is still cut into subword pieces, whose BLEU would be inflated."""
    for number, line in enumerate(lines, first):
        if found := _PIECES.search(line):
            raise UserError(
                f"{name}, {unit} {number}: the text still carries subword pieces ({found[0].strip()!r}); score plain "
                "text: generate with --bpe sentencepiece --sentencepiece-model MODEL, or --post-process subword_nmt"
            )


@dataclass
class _GenerateOutput:
    """The hypotheses of a generate output by kind (``D``, ``H``) and sentence, with what appeared twice."""

    best: dict[str, dict[int, tuple[float, str]]] = field(default_factory=lambda: {"D": {}, "H": {}})
    sources: set[int] = field(default_factory=set)
    doubled: set[int] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)

    def add_source(self, sentence: int) -> None:
        if sentence in self.sources:
            self.doubled.add(sentence)
        self.sources.add(sentence)

    def add_hypothesis(self, kind: str, sentence: int, score: float, text: str) -> None:
        known = self.best[kind].get(sentence)
        if known is not None and self._last[kind] != sentence:
            # The n best of a sentence stand together, so this is a second translation of it.
            self.doubled.add(sentence)
        if known is None or score > known[0] or math.isnan(known[0]):
            self.best[kind][sentence] = score, text
        self._last[kind] = sentence

    def in_order(self, name: str, expected: int) -> list[str]:
        translations = self.best["D"] or self.best["H"]
        if self.doubled:
            raise UserError(
                f"{name}: {_list(self.doubled)} appear{_s(self.doubled)} more than once; "
                "give the output of a single fairseq-generate run"
            )
        if beyond := {sentence for sentence in translations if sentence >= expected}:
            raise UserError(
                f"{name} has {len(translations)} translations but the reference has {expected} lines "
                f"({_list(beyond)} {'is' if len(beyond) == 1 else 'are'} beyond its end); "
                "give the reference of the test set that was translated"
            )
        if missing := set(range(expected)) - set(translations):
            raise UserError(
                f"{name} has {len(translations)} translations but the reference has {expected} lines: "
                f"{_list(missing)} {'is' if len(missing) == 1 else 'are'} missing; generate again, without "
                "--skip-invalid-size-inputs-valid-test, and let it finish"
            )
        return [translations[sentence][1] for sentence in range(expected)]


def _parse_generate_output(lines: list[str]) -> _GenerateOutput | None:
    """Collects the hypotheses; ``None`` for text without one and without ``S-`` lines, which is plain text."""
    output = _GenerateOutput()
    for line in lines:
        if found := _HYPOTHESIS.fullmatch(line):
            output.add_hypothesis(found[1], int(found[2]), float(found[3]), found[4] or "")
        elif found := _SOURCE.match(line):
            output.add_source(int(found[1]))
    return output if output.best["D"] or output.best["H"] or output.sources else None


def _list(sentences: set[int]) -> str:
    shown = ", ".join(map(str, sorted(sentences)[:_SHOWN]))
    more = f" and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
    return f"sentence{'' if len(sentences) == 1 else 's'} {shown}{more} (ids count from 0)"


def _s(sentences: set[int]) -> str:
    return "s" if len(sentences) == 1 else ""
