"""A stream of lines through a translator: line n in, line n out, whatever its bytes."""

import codecs
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Optional

import torch

from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.text_files import blocks_of_lines
from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.translator import Translator

FIRST_WINDOW = 16
LARGEST_WINDOW = 4096
"""Lines that are sorted by length together: few at first, so that something can be seen soon, then more for speed."""

_NOTHING = torch.empty(0, dtype=torch.long)


def translate_stream(
    translator: Translator,
    source: BinaryIO,
    output: BinaryIO,
    notice: Callable[[str], None],
    beam: Optional[int] = None,
) -> None:
    r"""Translates lines as they arrive; a line ends at ``\n`` and nowhere else.

    A byte order mark at the very start is no text. Of bytes that are not UTF-8, U+FFFD is translated.

    Args:
        notice: takes a sentence about each line with such bytes, and about each that is left empty because it cannot
            be translated.

    Raises:
        ValueError: at the end, if lines were left empty.
    """
    done = refused = 0
    with Progress("translate") as progress:
        for lines in _windows(blocks_of_lines(source)):
            encoded = []
            for number, line in enumerate(lines, done + 1):
                tokens = translator.encode(_decoded(line, number, notice))
                reason = translator.refusal(tokens)
                if reason is not None:
                    refused += 1
                    notice(f"line {number} {reason}")
                encoded.append(_NOTHING if reason is not None else tokens)
            texts = translator.decode_best(encoded, beam)
            output.write("".join(f"{text}\n" for text in texts).encode("utf-8"))
            output.flush()
            done += len(lines)
            if not output.isatty():  # where they would be mixed, the translations themselves show the progress
                progress.advance(len(lines))
    if refused:
        raise UserError(f"{refused:,} of {done:,} lines could not be translated, and are empty in the output")


def _windows(blocks: Iterator[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    size = FIRST_WINDOW
    for block in blocks:
        start = 0
        while start < len(block):
            yield block[start : start + size]
            start += size
            size = min(2 * size, LARGEST_WINDOW)


def _decoded(line: bytes, number: int, notice: Callable[[str], None]) -> str:
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        notice(f"line {number} is not UTF-8; U+FFFD stands for what cannot be read")
        return line.decode("utf-8", errors="replace")
