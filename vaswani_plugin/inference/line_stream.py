"""A stream of lines through a translator: line n in, line n out, whatever its bytes."""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Optional

import torch
from torch import Tensor

from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.text_files import blocks_of_lines
from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.translator import Translator

FIRST_WINDOW = 16
LARGEST_WINDOW = 4096
"""Lines that are sorted by length together: few at first, so that something can be seen soon, then more for speed."""


def translate_stream(
    translator: Translator,
    source: BinaryIO,
    output: BinaryIO,
    notice: Callable[[str], None],
    beam: Optional[int] = None,
) -> None:
    r"""Translates lines as they arrive; a line ends at ``\n`` and nowhere else.

    Args:
        notice: takes a sentence about each line that is left empty because it cannot be translated.

    Raises:
        ValueError: at the end, if there were such lines.
    """
    done = refused = 0
    with Progress("translate") as progress:
        for lines in _windows(blocks_of_lines(source)):
            encoded = []
            for number, line in enumerate(lines, done + 1):
                tokens, reason = _encode(translator, line)
                if reason is not None:
                    refused += 1
                    notice(f"line {number} {reason}")
                encoded.append(tokens)
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


def _encode(translator: Translator, line: bytes) -> tuple[Tensor, Optional[str]]:
    """Ids, none of them for a line that cannot be translated, and why it cannot."""
    nothing = torch.empty(0, dtype=torch.long)
    try:
        tokens = translator.encode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return nothing, f"is not UTF-8 (byte 0x{line[error.start]:02X} at position {error.start + 1}): convert it"
    reason = translator.refusal(tokens)
    return (tokens if reason is None else nothing), reason
