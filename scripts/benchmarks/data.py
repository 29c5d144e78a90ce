"""Text to pieces: ``vaswani encode`` beside SentencePiece called line by line."""

import random
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import Turn
from vaswani_plugin.data.encoding import encode_files
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary

_LINES = 100_000
_WORDS = 20


def plugin(task: dict[str, Any]) -> Turn:
    model, text, folder = _text()

    def run() -> None:
        encode_files(model, [text], folder / "pieces")

    return Turn(run, "file", {"sentences": _LINES})


def line_by_line(task: dict[str, Any]) -> Turn:
    model, text, folder = _text()
    segmentation = Segmentation(model)

    def run() -> None:
        with open(text, encoding="utf-8") as lines, open(folder / "pieces", "w", encoding="utf-8") as output:
            for line in lines:
                output.write(segmentation.encode(line.rstrip("\n")) + "\n")

    return Turn(run, "file", {"sentences": _LINES})


def _text() -> tuple[str, str, Path]:
    """A vocabulary of 8,000 pieces and a text in made-up words with the frequencies of a natural one."""
    folder = Path(tempfile.mkdtemp(prefix="vaswani-benchmark-"))
    made_up = random.Random(1)
    syllables = [consonant + vowel for consonant in "bdfghklmnprstw" for vowel in "aeiou"]
    words = ["".join(made_up.choices(syllables, k=made_up.randint(1, 4))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    text = folder / "text"
    with open(text, "w", encoding="utf-8") as output:
        for _ in range(_LINES):
            output.write(" ".join(made_up.choices(words, weights, k=_WORDS)) + "\n")
    make_vocabulary([text], 8_000, folder / "joint")
    return str(folder / "joint.model"), str(text), folder
