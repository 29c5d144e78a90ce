"""Cleaning of a raw parallel text before it is cut into pieces, with an account of what was removed and seen.

A pair of lines is removed by the first of these rules that it breaks: both sides are UTF-8; no side is blank; no side
has more than ``max_length`` words; the longer side has at most ``max_ratio`` times the words of the shorter. Words
are separated by white space. Odd characters that break other tools are reported with their lines, and kept or fixed.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from vaswani_plugin.data.odd_characters import FINDINGS, FIXES, fixed, odd_characters
from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.text_files import STANDARD_STREAM, count_lines, raw_lines, replacing
from vaswani_plugin.errors import UserError

RULES = {
    "invalid_utf8": "a side is not valid UTF-8",
    "blank": "a side is blank",
    "too_long": "a side has more words than --max-length",
    "ratio": "one side has more than --max-ratio times the words of the other",
}
# A file in a wrong encoding has a finding on every line; the count goes on, the list ends here.
LINES_LISTED = 1000


@dataclass
class Finding:
    """Lines of one file with one kind of odd character: how many, and the numbers of the first 1,000."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < LINES_LISTED:
            self.lines.append(line)


@dataclass
class CleaningReport:
    """What came in, what each rule removed, what was kept, and the odd characters of each file by kind.

    The findings are about the files as they came in (blank: once fixed); ``fixed`` says that the outputs are rid of
    the characters.
    """

    fixed: bool = False
    pairs: int = 0
    kept: int = 0
    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    findings: dict[str, dict[str, Finding]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_text(self) -> str:
        """The report for people: pairs, removals by rule, findings by file with line numbers."""
        lines = [f"{self.pairs:,} pairs read"]
        lines += [f"{count:>12,} removed: {RULES[rule]}" for rule, count in self.removed.items()]
        lines.append(f"{self.kept:>12,} kept in {' and '.join(self.outputs)}")
        for path, findings in self.findings.items():
            for kind, finding in findings.items():
                done = f", {FIXES[kind]}" if self.fixed and kind in FIXES else ""
                lines.append(f"{path}: {_amount(finding)} with {FINDINGS[kind]}{done}: {_numbers(finding)}")
        return "\n".join(lines)


def clean_pair(
    source: str | Path,
    target: str | Path,
    prefix: str | Path,
    *,
    max_length: int = 175,
    max_ratio: float = 1.5,
    fix: bool = False,
) -> CleaningReport:
    """Writes the pairs worth keeping to ``PREFIX.SUFFIX`` for both sides, the suffixes taken from the inputs' names.

    With ``fix``, odd characters are replaced or dropped (:func:`vaswani_plugin.data.odd_characters.fixed`), and the
    rules look at what then is there. No line is ever cut in two or joined to another.
    Files of unequal length, or names that give no two different outputs, are a ``ValueError`` before any work.
    """
    if max_length < 1 or not max_ratio >= 1:
        raise UserError(f"--max-length {max_length} and --max-ratio {max_ratio:g} must both be at least 1")
    outputs = _output_names(source, target, prefix)
    counts = count_lines(source), count_lines(target)
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} lines but {target} has {counts[1]}; line n of one must be the translation of "
            "line n of the other (lines end at \\n only)"
        )
    report = CleaningReport(fixed=fix, outputs=[str(output) for output in outputs])
    with replacing(*outputs) as (source_out, target_out), Progress("clean", "pairs") as progress:
        for number, (left, right) in enumerate(zip_longest(raw_lines(source), raw_lines(target), fillvalue=b""), 1):
            left, left_words = _take(left, source, number, report)
            right, right_words = _take(right, target, number, report)
            broken = _broken_rule(left_words, right_words, max_length, max_ratio)
            progress.advance()
            report.pairs += 1
            if broken:
                report.removed[broken] += 1
                continue
            report.kept += 1
            source_out.write(left + b"\n")
            target_out.write(right + b"\n")
    return report


def _output_names(source: str | Path, target: str | Path, prefix: str | Path) -> tuple[Path, Path]:
    if STANDARD_STREAM in (str(source), str(target)):
        raise UserError("cleaning reads its inputs twice, so both must be files, not standard input")
    suffixes = [Path(str(path).removesuffix(".gz")).suffix for path in (source, target)]
    if not all(suffixes) or suffixes[0] == suffixes[1]:
        raise UserError(
            f"{source} and {target} would both be written to one name; the ends of their names become the ends of the "
            "outputs, so they must differ, as in train.en and train.de"
        )
    outputs = Path(f"{prefix}{suffixes[0]}"), Path(f"{prefix}{suffixes[1]}")
    for output in outputs:
        if output.exists() and any(output.samefile(path) for path in (source, target)):
            raise UserError(f"{output} is an input, which the output would replace; choose another --output")
    return outputs


def _take(line: bytes, path: str | Path, number: int, report: CleaningReport) -> tuple[bytes, int | None]:
    """Reports what is odd about a line; returns it as it is to be written, and its words (``None``: not UTF-8)."""
    kinds = odd_characters(line)
    if "crlf" in kinds:
        line = line[:-1]
    words = None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        kinds.append("invalid_utf8")
    else:
        if kinds and report.fixed:
            text = fixed(text)
            line = text.encode("utf-8")
        words = len(text.split())
    if words == 0:
        kinds.append("blank")
    for kind in kinds:
        report.findings.setdefault(str(path), {}).setdefault(kind, Finding()).add(number)
    return line, words


def _broken_rule(left: int | None, right: int | None, max_length: int, max_ratio: float) -> str | None:
    if left is None or right is None:
        return "invalid_utf8"
    shorter, longer = sorted((left, right))
    if shorter == 0:
        return "blank"
    if longer > max_length:
        return "too_long"
    if longer > max_ratio * shorter:
        return "ratio"
    return None


def _amount(finding: Finding) -> str:
    return f"{finding.count:,} line{'' if finding.count == 1 else 's'}"


def _numbers(finding: Finding, shown: int = 10) -> str:
    numbers: Iterator[str] = map(str, finding.lines[:shown])
    return ", ".join(numbers) + (" ..." if finding.count > shown else "")
