"""Text as strangers write it: files that tools stumble over, by name, and strategies for any text whatever."""

from pathlib import Path

from hypothesis import strategies as st

FIRST, LAST = b"red house", b"every child sees the small garden"
"""Ordinary lines, before and after the odd ones: their results tell whether everything is in its place."""

_BETWEEN: "dict[str, list[bytes]]" = {
    "100,000 characters": [b"w1" * 50_000],
    "only spaces": [b" ", b"     "],
    "control characters": [
        bytes(range(1, 10)) + bytes(range(11, 32)),
        b"\x1b[31mred\x1b[0m\x07\x08\x7f",
        "\u0080\u009f".encode(),
    ],
    "NUL": [b"\0", b"red\0house", b"\0\0\0 red"],
    "not UTF-8": [b"\xff", "r\u00f6tes Haus".encode("latin-1"), b"red \xed\xa0\x80", b"red \xc3", b"\xf4\x90\x80\x80"],
    "CR LF": [b"\r", b"small garden\r", b" \r"],
    "lone CR": [b"red\rhouse", b"\r\rred", b"red\r\rhouse \rhere"],
    "other line ends": [
        *("red\u2028house".encode(), "red\u2029house".encode(), "red\u0085house".encode()),
        *(b"red\vhouse", b"red\fhouse", b"red\x1chouse\x1d\x1e", "\u2028".encode(), "\u2028red\u2029".encode()),
    ],
    "byte order marks inside": ["\ufeffred".encode(), "red\ufeff house".encode(), "\ufeff".encode()],
    "right to left": [
        "\u05e9\u05dc\u05d5\u05dd \u200f\u202e red \u202c".encode(),
        "\u0645\u0631\u062d\u0628\u0627 \u2067\u0628\u2069".encode(),
    ],
    "emoji with joiners": [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 red".encode(),
        "\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd\u2764\ufe0f".encode(),
    ],
    "combining marks": [
        ("e\u0301" + "\u0300" * 50).encode(),
        "Z\u0351\u036b\u0343\u036a\u0302a\u0334l\u0358g\u0321o\u034e \u0301 \u00e9".encode(),
        "\u1112\u1161\u11ab \ud55c".encode(),
    ],
    "longer than any seen in training": [b"the red horse sees the old garden " * 20],
    "thousands of repeated words": [b"the " * 3000, b"house house " * 1500],
    "white space": [
        *(b"  red  house ", b"\tred\thouse\t", b"red   house  ", b" red"),
        *("\u00a0red\u00a0house\u00a0".encode(), "\u3000red\u3000".encode(), "\u200bred\u200b".encode()),
    ],
    "U+2581": ["\u2581red \u2581 \u2581\u2581 house\u2581".encode(), "\u2581".encode()],
    "special pieces": [b"<s> red </s>", b"<pad>", b"<unk> <unk>", b"</s>", b"<0x41> <0x0A>", b"madeupword0000"],
    "SentencePiece's own characters": ["\u2585 red \u2585".encode(), "red \u2047 house".encode(), "\ufffd".encode()],
    "lines of fairseq's output": [b"S-0\tred", b"H-0\t-0.5\tred", b"D-7\t0\t", b"#fairseq:overwrite 1"],
}

FILES = {
    "empty file": b"",
    "one line": LAST + b"\n",
    "one line without an end": LAST,
    "blank lines alone": b"\n\n\n",
    "one space": b" \n",
    "byte order mark": b"\xef\xbb\xbf" + FIRST + b"\n" + LAST + b"\n",
    "CR LF alone": FIRST + b"\r\n\r\n" + LAST + b"\r\n",
    "last line without an end": FIRST + b"\n\n" + LAST,
    **{name: b"\n".join([FIRST, *lines, LAST]) + b"\n" for name, lines in _BETWEEN.items()},
}


def lines_of(content: bytes) -> "list[bytes]":
    """What ends at LF; a last line without it is one, if there is anything in it."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# What tools split, strip, swallow or spell otherwise, among ordinary letters.
STRANGE = [
    *"\t\v\f\r\0 \x1c\x85\u00a0\u2028\u2029\u2581\u2585\u2047\ufeff\u3000\ue000\ufffd\u200d\u0301\u202e<>s",
    *("<s>", "</s>", "<0x41>", "\r\r", "<pad>", "the ", "house", ". "),
]
LINE = st.lists(st.sampled_from(STRANGE) | st.text(st.characters(exclude_characters="\n", codec="utf-8"))).map("".join)
BYTES = LINE.map(str.encode) | st.binary().map(lambda line: line.replace(b"\n", b""))


def write_pair(content: bytes, folder: Path) -> Path:
    """The content as the file of both languages; their name without its end."""
    for language in ("en", "de"):
        (folder / f"text.{language}").write_bytes(content)
    return folder / "text"
