"""What holds for any text whatever: lines stay lines, in order, and come back from their pieces unchanged."""

import gzip
import random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from wild_text import BYTES, LINE, STRANGE

from vaswani_plugin.data.cleaning import clean_pair
from vaswani_plugin.data.encoding import encode_file
from vaswani_plugin.data.odd_characters import fixed
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.text_files import raw_lines
from vaswani_plugin.data.vocabulary import make_vocabulary

GZIP = b"\x1f\x8b\x08"  # how a packed file begins, and no text in UTF-8


@pytest.fixture(scope="module")
def segmentation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "text").write_text("the small house stands in the garden\ndas Haus <s>\n" * 20)
    make_vocabulary([folder / "text"], 310, folder / "joint")
    return Segmentation(folder / "joint.model")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@given(st.lists(BYTES, max_size=8), st.booleans(), st.booleans())
def test_a_file_is_its_lines(folder, lines, last_ends, packed):
    content = b"\n".join(lines) + (b"\n" if last_ends and lines else b"")
    assume(packed or not content.startswith(GZIP))
    (folder / "lines").write_bytes(gzip.compress(content) if packed else content)
    # An empty last line is one only where a line feed ends it.
    assert list(raw_lines(folder / "lines")) == (lines if last_ends or not lines or lines[-1] else lines[:-1])


@given(st.lists(LINE, min_size=1, max_size=8))
def test_encoding_keeps_every_line_in_its_place(folder, segmentation, lines):
    (folder / "plain").write_bytes("".join(f"{line}\n" for line in lines).encode())
    encode_file(segmentation, folder / "plain", folder / "pieces")
    encoded = (folder / "pieces").read_bytes().decode().split("\n")
    assert encoded.pop() == ""
    assert [segmentation.decode(pieces) for pieces in encoded] == lines
    # Nothing but single spaces parts the pieces, for any tool that splits at white space.
    assert [pieces.split() for pieces in encoded] == [pieces.split(" ") if pieces else [] for pieces in encoded]


@given(st.lists(st.tuples(BYTES, BYTES), max_size=8), st.booleans())
@example([(b"", b"\x1f\x8b"), (b"a", b"a")], False)
def test_cleaning_keeps_pairs_together_and_in_order(folder, pairs, fix):
    assume(not pairs or not any(line.startswith(GZIP) for line in pairs[0]))
    for side, suffix in enumerate(("en", "de")):
        (folder / f"raw.{suffix}").write_bytes(b"".join(pair[side] + b"\n" for pair in pairs))
    report = clean_pair(folder / "raw.en", folder / "raw.de", folder / "clean", max_length=9, max_ratio=3, fix=fix)
    assert report.pairs == len(pairs) == report.kept + sum(report.removed.values())
    outputs = [(folder / f"clean.{suffix}").read_bytes().split(b"\n") for suffix in ("en", "de")]
    assert [output.pop() for output in outputs] == [b"", b""]
    written = list(zip(*outputs, strict=True))
    assert len(written) == report.kept
    assert written == [pair for pair in (expected(pair, fix) for pair in pairs) if pair is not None]


def expected(pair, fix):
    """The rules once more, over whole characters."""
    sides = []
    for line in pair:
        line = line.removesuffix(b"\r")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return None
        if fix:
            kept = [character for character in text if character not in "\ufeff\0" and not is_dropped(character)]
            text = "".join(" " if len(f"a{c}b".splitlines()) > 1 or c == "\x1f" else c for c in kept)
        sides.append(text)
    shorter, longer = sorted(len(side.split()) for side in sides)
    fits = shorter > 0 and longer <= 9 and longer <= 3 * shorter
    return tuple(side.encode() for side in sides) if fits else None


def is_dropped(character):
    code = ord(character)
    return (code < 0x20 or 0x7F <= code < 0xA0) and not character.isspace()


@given(LINE)
def test_a_fixed_line_is_one_line_for_every_tool(line):
    assert len(f"a{fixed(line)}b".splitlines()) == 1
    assert fixed(fixed(line)) == fixed(line)


def test_every_tool_agrees_about_a_fixed_text():
    """Line by line the fixed text is the same for Python's universal newlines, splitlines and the byte."""
    draw = random.Random(1)
    lines = [fixed("".join(draw.choices(STRANGE, k=9))) for _ in range(300)]
    text = "".join(f"a{line}b\n" for line in lines)
    assert text.splitlines() == text[:-1].split("\n") == [f"a{line}b" for line in lines]
