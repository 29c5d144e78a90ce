"""Whole files into pieces: one line out for every line in, in order, on all cores, in constant memory."""

from pathlib import Path

from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.text_files import blocks_of_lines, decode_line, open_binary, replacing


def encode_file(model: str | Path, source: str | Path, output: str | Path) -> int:
    """Writes the pieces of each line of ``source`` to ``output`` (``-`` for the standard streams); returns the lines.

    From a pipe, lines are encoded as they arrive. A line that is not UTF-8 is a ``ValueError``.
    """
    segmentation = Segmentation(model)
    done = 0
    with open_binary(source) as stream, replacing(output) as (encoded,), Progress("encode") as progress:
        for block in blocks_of_lines(stream):
            lines = [decode_line(line, source, number) for number, line in enumerate(block, done + 1)]
            encoded.write("".join(f"{pieces}\n" for pieces in segmentation.encode_lines(lines)).encode("utf-8"))
            encoded.flush()
            done += len(block)
            progress.advance(len(block))
    return done
