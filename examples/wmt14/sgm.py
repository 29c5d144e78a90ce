"""Reading of the news tests' SGM files: XML in looks, but not well-formed, so that a parser of XML would stop."""

import html
import re

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
_OPENING = re.compile(r"<seg\b", re.IGNORECASE)
# What would end a line, or part columns, in the tools that come after; a no-break space is text and stays.
_BREAK = re.compile(r"[ \t\r\n]+")


def segments(text: str) -> list[str]:
    """The text of each <seg>, one line each, with entities as the characters that they stand for.

    A ``ValueError`` tells of a segment that does not end.
    """
    found = _SEGMENT.findall(text)
    opened = len(_OPENING.findall(text))
    if len(found) != opened:
        raise ValueError(f"has {opened:,} segments that begin but {len(found):,} that end")
    return [_BREAK.sub(" ", html.unescape(_BREAK.sub(" ", segment))).strip(" ") for segment in found]
