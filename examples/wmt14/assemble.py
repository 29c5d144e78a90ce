"""Unpacks the archives into train, valid and test text of two languages: raw lines, one sentence each.

Usage: python assemble.py ARCHIVES OUTPUT SOURCE TARGET CORPUS...

Members are read as streams, so memory stays flat; the files take their names together, when all is done.
"""

import gzip
import shutil
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from archives import ARCHIVES, CORPORA, DEVELOPMENT, TEST, Corpus
from sgm import segments

from vaswani_plugin.data.text_files import blocks_of_lines, replacing
from vaswani_plugin.errors import UserError

# gzip makes text three or four times smaller.
_UNPACKED = 4
# The text, the same cleaned, in pieces (a little longer) and binarised, for each byte of text.
_ALL_STEPS = 4.5


@contextmanager
def reading(path: Path) -> Iterator[tarfile.TarFile]:
    """The archive as a stream; damage of any kind is a ``UserError`` that names it."""
    if not path.exists():
        raise UserError(f"{path} is missing: remove the folder steps beside archives, and run it again to fetch it")
    try:
        with tarfile.open(path, "r|*") as archive:
            yield archive
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is damaged or cut off ({error}): remove it and run prepare.sh again") from error


def _name(member: tarfile.TarInfo) -> str:
    return member.name.removeprefix("./")


def find_members(folder: Path, corpora: list[str], source: str, target: str) -> dict[str, tuple[str, str]]:
    """The members to read for both sides of each corpus, after a look at all archives and at the disk.

    Raises:
        UserError: a member that is missing, an archive that is damaged, a disk too full for all that follows.
    """
    sizes: dict[str, dict[str, int]] = {}
    for key in dict.fromkeys(CORPORA[name].archive for name in corpora):
        with reading(folder / key) as archive:
            sizes[key] = {_name(member): member.size for member in archive if member.isfile()}
    found: dict[str, tuple[str, str]] = {}
    total = 0
    for name in corpora:
        corpus = CORPORA[name]
        sides = []
        for side in ("source", "target"):
            names = corpus.members(side, source, target)
            member = next((member for member in names if member in sizes[corpus.archive]), None)
            if member is None:
                raise UserError(f"{folder / corpus.archive} has no member {' or '.join(names)}, which {name} needs")
            sides.append(member)
            total += sizes[corpus.archive][member] * (_UNPACKED if member.endswith(".gz") else 1)
        found[name] = sides[0], sides[1]
    return _with_room(folder, found, total)


def _with_room(folder: Path, found: dict[str, tuple[str, str]], total: int) -> dict[str, tuple[str, str]]:
    needed, free = total * _ALL_STEPS, shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"the text and what is made of it need about {needed / 1e9:,.1f} GB beside {folder}, where "
            f"{free / 1e9:,.1f} GB are free: make room, or choose another WORK"
        )
    return found


def copy_member(archive: tarfile.TarFile, member: tarfile.TarInfo, output: BinaryIO, exact: bool) -> int:
    r"""Appends a member's lines, each with its \n, unpacked and out of its SGM; returns their number.

    ``exact`` keeps the lines of plain text as they are, for cleaning to report on; else a CR at the end goes.
    """
    stream: IO[bytes] | None = archive.extractfile(member)
    assert stream is not None
    if member.name.endswith(".sgm"):
        try:
            lines = segments(stream.read().decode("utf-8"))
        except ValueError as error:  # UnicodeDecodeError is one
            raise UserError(f"{member.name} in {archive.name} cannot be read as SGM: it {error}") from error
        output.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
        return len(lines)
    if member.name.endswith(".gz"):
        stream = gzip.GzipFile(filename=member.name, fileobj=stream)
    count = 0
    for block in blocks_of_lines(stream):  # type: ignore[arg-type]
        if not exact:
            block = [line.removesuffix(b"\r") for line in block]
        output.write(b"\n".join(block) + b"\n")
        count += len(block)
    return count


def append(
    folder: Path, corpus: Corpus, members: tuple[str, str], outputs: tuple[BinaryIO, BinaryIO], exact: bool
) -> int:
    """Appends both sides of a corpus; returns the number of pairs. Sides of unequal length are a ``UserError``."""
    path = folder / corpus.archive
    counts: dict[str, int] = {}
    with reading(path) as archive:
        for member in archive:
            for name, output in zip(members, outputs):
                if _name(member) == name and name not in counts:
                    counts[name] = copy_member(archive, member, output, exact)
    if counts[members[0]] != counts[members[1]]:
        raise UserError(
            f"{path}: {members[0]} has {counts[members[0]]:,} lines but {members[1]} has {counts[members[1]]:,}; they "
            "must be translations of each other line by line"
        )
    return counts[members[0]]


def assemble(folder: Path, output: Path, source: str, target: str, training: list[str]) -> None:
    members = find_members(folder, [*training, DEVELOPMENT, TEST], source, target)
    parts = {"train": training, "valid": [DEVELOPMENT], "test": [TEST]}
    paths = [output / f"{part}.{language}" for part in parts for language in (source, target)]
    pair = f"{target if source == 'en' else source}-en"
    with replacing(*paths) as streams:
        for number, (part, corpora) in enumerate(parts.items()):
            for name in corpora:
                corpus = CORPORA[name]
                sides = streams[2 * number], streams[2 * number + 1]
                count = append(folder, corpus, members[name], sides, exact=part == "train")
                published = corpus.pairs.get(pair, count)
                remark = "" if count == published else f" (the official {ARCHIVES[corpus.archive].name}: {published:,})"
                print(f"  {part}: {count:,} pairs of {name}{remark}", flush=True)


def main() -> None:
    archives, output, source, target, *corpora = sys.argv[1:]
    try:
        assemble(Path(archives), Path(output), source, target, corpora)
    except (ValueError, OSError) as error:
        sys.exit(f"wmt14: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
