r"""Files of lines, as every tool here reads and writes them.

A line ends at ``b"\n"`` and nowhere else. Python's universal newlines and ``str.splitlines`` also break lines
at a lone carriage return, U+0085, U+2028 and others, and then the two sides of a parallel text drift apart.
"""

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from vaswani_plugin.errors import UserError
from vaswani_plugin.unfinished import unfinished

STANDARD_STREAM = "-"
# With the one method of compression that there is; no UTF-8 text begins so.
_GZIP_MAGIC = b"\x1f\x8b\x08"
_BLOCK_BYTES = 1 << 20


@contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Opens a file for reading, unpacking gzip (known by its first bytes, not by its name); ``-`` is standard input."""
    if str(path) == STANDARD_STREAM:
        yield sys.stdin.buffer
        return
    with open(path, "rb") as raw:
        packed = raw.peek(3)[:3] == _GZIP_MAGIC
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw


def blocks_of_lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    r"""Yields lists of whole lines without their ``\n``, each list as soon as its bytes have arrived.

    A list holds about 1 MiB, so memory stays flat; a last line without ``\n`` counts as a line.
    """
    rest = bytearray()
    read = getattr(stream, "read1", stream.read)
    try:
        while block := read(_BLOCK_BYTES):
            head, newline, tail = block.rpartition(b"\n")
            if not newline:
                rest += block
                continue
            lines = head.split(b"\n")
            lines[0] = bytes(rest) + lines[0]
            yield lines
            rest = bytearray(tail)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{stream.name}: the gzip file is damaged or cut off; fetch or make it again") from error
    if rest:
        yield [bytes(rest)]


def raw_lines(path: str | Path) -> Iterator[bytes]:
    r"""Yields the lines of a file as bytes, without their ``\n``."""
    with open_binary(path) as stream:
        for block in blocks_of_lines(stream):
            yield from block


def text_lines(path: str | Path) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file without their ``\n``; a ``ValueError`` names the line that is not UTF-8."""
    for number, line in enumerate(raw_lines(path), 1):
        yield decode_line(line, path, number)


def decode_line(line: bytes, path: str | Path, number: int) -> str:
    """Decodes one line of UTF-8 text; a ``ValueError`` names file, line and byte."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        name = "standard input" if str(path) == STANDARD_STREAM else path
        raise UserError(
            f"{name}, line {number}: not valid UTF-8 (byte 0x{line[error.start]:02X} at position {error.start + 1}); "
            "convert the file to UTF-8, or drop such lines with `vaswani clean`"
        ) from error


def count_lines(path: str | Path) -> int:
    r"""Number of lines, counting ``\n`` and an unfinished last line."""
    with open_binary(path) as stream:
        return sum(len(block) for block in blocks_of_lines(stream))


@contextmanager
def replacing(*paths: str | Path) -> Iterator[list[BinaryIO]]:
    """Opens files for writing that take their final names together, and only when the block ends without an error.

    Until then the text is in a temporary file in the same folder, so that an interrupted run never leaves half a
    file under the final name. Folders that are missing are made. ``-`` is standard output; devices and pipes are
    written directly.
    """
    with ExitStack() as names:
        streams: list[BinaryIO] = []
        renames: dict[BinaryIO, tuple[Path, Path]] = {}
        with ExitStack() as opened:
            for path in paths:
                if str(path) == STANDARD_STREAM:
                    streams.append(sys.stdout.buffer)
                    continue
                # The target of a symbolic link is what gets replaced, not the link.
                target = Path(os.path.realpath(path))
                if target.is_dir():
                    raise UserError(f"{path} is a folder; the output needs the name of a file")
                if target.exists() and not target.is_file():
                    streams.append(opened.enter_context(open(target, "wb")))
                    continue
                temporary = names.enter_context(unfinished(target))
                streams.append(opened.enter_context(open(temporary, "wb")))
                renames[streams[-1]] = (temporary, target)
            yield streams
            sys.stdout.flush()
            for stream in renames:
                stream.flush()
                os.fsync(stream.fileno())  # a power cut may come between the renaming and the writing
        # All files are complete and closed.
        for temporary, target in renames.values():
            os.replace(temporary, target)
