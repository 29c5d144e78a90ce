"""What fairseq-preprocess looks at before its first long step: the text is UTF-8, with as many lines on both sides."""

from typing import List, Optional, Sequence

from fairseq.user_error import UserError


def check_text(prefixes: Sequence[str], languages: Sequence[Optional[str]]) -> None:
    """Read each text once.

    Raises UserError for a file without lines, a line that is not UTF-8, or sides of different length. A line ends at
    the byte LF and nowhere else.
    """
    for prefix in prefixes:
        paths = [prefix + (f".{language}" if language is not None else "") for language in languages]
        counts: List[int] = [_count_lines(path) for path in paths]
        for path, count in zip(paths, counts):
            if count != counts[0]:
                raise UserError(
                    f"{paths[0]} has {counts[0]} lines but {path} has {count}; line n of one must be the translation "
                    "of line n of the other (lines end at \\n only)"
                )


def _count_lines(path: str) -> int:
    number = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02X} at position "
                    f"{error.start + 1}); convert the file to UTF-8, or leave such lines out on both sides"
                ) from None
    if number == 0:
        raise UserError(f"{path} is empty; give a text with at least one line")
    return number
