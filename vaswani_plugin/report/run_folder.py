"""Where a run keeps what a report is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from vaswani_plugin.data.text_files import raw_lines
from vaswani_plugin.errors import UserError
from vaswani_plugin.report.training_log import is_training_log

_TRANSLATIONS = ("generate*.txt", "test_averaged.txt", "test*.txt")


@dataclass(frozen=True)
class RunFolder:
    """The files of a run that are there already."""

    path: Path
    log: Optional[Path]
    scores: Optional[Path]
    translations: Optional[Path]
    has_checkpoint: bool


def find_run(path: Path) -> RunFolder:
    """A recipe's folder (WORK), or the folder of a training's checkpoints with its log in it.

    Raises:
        ValueError: there is no such folder, or nothing of a run in it.
    """
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: give the folder of a run, such as runs/quickstart")
    log = next(filter(is_training_log, _logs(path)), None)
    scores = path / "score.json"
    translations = next(filter(_is_generate_output, _named(path, *_TRANSLATIONS)), None)
    found = RunFolder(
        path,
        log,
        scores if scores.is_file() else None,
        translations,
        any(_named(path, "averaged.pt", "checkpoint*.pt", "checkpoints/checkpoint*.pt")),
    )
    if found.log is None and found.scores is None and found.translations is None and not found.has_checkpoint:
        raise UserError(
            f"{path} has nothing of a training run: no log of fairseq-train (*.log or logs/*.log), no checkpoint and "
            "no score.json; give a recipe's folder, or train with --log-file FOLDER/train.log --save-dir FOLDER"
        )
    return found


def _logs(path: Path) -> Iterator[Path]:
    """The likeliest first. A log that stands with the checkpoints covers all starts of the training."""
    yield from _named(path, "checkpoints/train.log", "train.log", "logs/train*.log", "*.log", "checkpoints/*.log")
    yield from _named(path, "logs/*.log", "*.out", "*.txt")


def _named(path: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(file for file in path.glob(pattern) if file.is_file() and file.stat().st_size)


def _is_generate_output(path: Path) -> bool:
    lines = (line for _, line in zip(range(2000), raw_lines(path)))
    return any(line.startswith((b"H-", b"D-")) for line in lines)
