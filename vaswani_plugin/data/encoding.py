"""Whole files into pieces: one line out for every line in, in order, on all cores, in constant memory."""

from collections.abc import Sequence
from pathlib import Path

from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.text_files import STANDARD_STREAM, blocks_of_lines, decode_line, open_binary, replacing
from vaswani_plugin.errors import UserError


def encode_files(model: str | Path, sources: Sequence[str | Path], output: str | Path) -> None:
    """Encodes one file to ``output``, or several (or one, to a folder that is there) to their own names in a folder.

    ``-`` is standard input or output, and then there is one file only; names that would meet are a ``ValueError``.
    """
    into_folder = len(sources) > 1 or (str(output) != STANDARD_STREAM and Path(output).is_dir())
    outputs = [Path(output) / Path(source).name.removesuffix(".gz") for source in sources] if into_folder else [output]
    if into_folder and STANDARD_STREAM in {str(output), *map(str, sources)}:
        raise UserError("several files are encoded into a folder: give --output FOLDER, and no - among the files")
    if len({str(path) for path in outputs}) < len(sources):
        raise UserError(f"two of the files would have the same name in {output}; encode them one by one")
    segmentation = Segmentation(model)
    for source, encoded in zip(sources, outputs, strict=True):
        encode_file(segmentation, source, encoded)


def encode_file(segmentation: Segmentation, source: str | Path, output: str | Path) -> int:
    """Writes the pieces of each line of ``source`` to ``output`` (``-`` for the standard streams); returns the lines.

    From a pipe, lines are encoded as they arrive. A line that is not UTF-8 is a ``ValueError``.
    """
    done = 0
    with open_binary(source) as stream, replacing(output) as (encoded,), Progress("encode") as progress:
        for block in blocks_of_lines(stream):
            lines = [decode_line(line, source, number) for number, line in enumerate(block, done + 1)]
            encoded.write("".join(f"{pieces}\n" for pieces in segmentation.encode_lines(lines)).encode("utf-8"))
            encoded.flush()
            done += len(block)
            progress.advance(len(block))
    return done
