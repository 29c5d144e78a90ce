"""Characters in a line of text that break other tools: which there are, and the line without them."""

import re

_SPACE = "made a space"
_DROPPED = "dropped"

FINDINGS = {
    "carriage_return": "lone carriage return (0x0D)",
    "crlf": "line that ends in CR LF (written with LF alone)",
    "line_separator": "line separator U+2028",
    "paragraph_separator": "paragraph separator U+2029",
    "next_line": "next line U+0085",
    "byte_order_mark": "byte order mark U+FEFF",
    "nul": "NUL byte",
    "control": "other control character",
    "invalid_utf8": "bytes that are not UTF-8",
    "blank": "nothing but white space",
}
"""What can be said about a line."""

FIXES = {
    "carriage_return": _SPACE,
    "line_separator": _SPACE,
    "paragraph_separator": _SPACE,
    "next_line": _SPACE,
    "byte_order_mark": _DROPPED,
    "nul": _DROPPED,
    "control": f"{_DROPPED}, or {_SPACE} where it is white space",
}
"""What :func:`fixed` does about it."""

# Bytes of UTF-8; 0xC2 begins a character of two bytes and stands nowhere else.
_PATTERNS = {
    "carriage_return": re.compile(b"\r(?!$)"),
    "line_separator": re.compile("\u2028".encode()),
    "paragraph_separator": re.compile("\u2029".encode()),
    "next_line": re.compile("\u0085".encode()),
    "byte_order_mark": re.compile("\ufeff".encode()),
    "nul": re.compile(b"\0"),
    "control": re.compile(b"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x84\x86-\x9f]"),
}
# One search over each line instead of seven: nearly every line has none of them.
_ANY = re.compile(b"|".join(pattern.pattern for pattern in _PATTERNS.values()) + b"|\r")

_CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"]
_TABLE = str.maketrans({c: " " if c.isspace() else "" for c in [*_CONTROLS, "\u2028", "\u2029", "\ufeff"]})


def odd_characters(line: bytes) -> list[str]:
    r"""Kinds of :data:`FINDINGS` in a line without its ``\n``, but for what needs the line decoded."""
    if not _ANY.search(line):
        return []
    kinds = [kind for kind, pattern in _PATTERNS.items() if pattern.search(line)]
    return [*kinds, "crlf"] if line.endswith(b"\r") else kinds


def fixed(text: str) -> str:
    """The line with a space for each control character and separator that is white space, and without the others.

    The tab, a control character that every tool takes for white space, stays; so does every other character.
    """
    return text.translate(_TABLE)
