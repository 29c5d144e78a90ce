"""The whole comparison, for people, for programs and for a training's log."""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from vaswani_plugin.audit.architecture import architecture_details, nearest_model, read_architecture
from vaswani_plugin.audit.configuration import Configuration, from_arguments, from_fairseq
from vaswani_plugin.audit.paper import Detail, PaperModel
from vaswani_plugin.audit.progress import Progress, read_progress
from vaswani_plugin.audit.search import search_details
from vaswani_plugin.audit.training import (
    batch_details,
    checkpoint_details,
    length_details,
    loss_details,
    optimizer_details,
    schedule_details,
)
from vaswani_plugin.checkpoints.reading import read_checkpoint
from vaswani_plugin.errors import UserError

logger = logging.getLogger(__name__)
# In a training's log these share a line, so that a quick run of another size says it once.
_TOGETHER = ("architecture", "batch")


@dataclass(frozen=True)
class Audit:
    """``subject`` is what was looked at, ``paper`` the model of the paper that it is nearest to."""

    subject: str
    paper: PaperModel
    details: Sequence[Detail]

    @property
    def differences(self) -> list[Detail]:
        return [detail for detail in self.details if detail.same is False]

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "model": self.paper.name,
            "differences": len(self.differences),
            "details": [asdict(detail) for detail in self.details],
        }

    def rows(self) -> list[list[str]]:
        """A heading, then for each detail: name, the paper's value and section, this run's, verdict, why it matters."""
        rows = [["", f"paper ({self.paper.name})", "this run", "", "why it matters"]]
        for detail in self.details:
            verdict = {True: "same", False: "DIFFERENT", None: "not told"}[detail.same]
            paper = f"{_shown(detail.paper)} ({detail.section})"
            rows.append([detail.name, paper, _with_note(detail), verdict, detail.why])
        return rows

    def as_table(self) -> str:
        """:meth:`rows` in columns, and the count of differences."""
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths)), row[4]]) for row in rows]
        same = sum(detail.same is True for detail in self.details)
        lines.append(f"{self.subject}: {len(self.differences)} of {same + len(self.differences)} details differ")
        return "\n".join(lines)

    def log_lines(self) -> Iterator[str]:
        """A line for each difference, those of the architecture in one."""
        for group, members in groupby(self.differences, key=lambda detail: detail.group):
            details = list(members)
            if group not in _TOGETHER:
                for detail in details:
                    yield f"{detail.name} {_with_note(detail)}, the paper {_shown(detail.paper)} ({detail.section})"
                continue
            these = "; ".join(f"{each.name} {_shown(each.value)}, not {_shown(each.paper)}" for each in details)
            sections = ", ".join(sorted({detail.section for detail in details}))
            whose = "the paper" if group == "batch" else f"the paper's {self.paper.name} model"
            yield f"{these}, as in {whose} ({sections})"


def audit(config: Configuration, progress: Progress = Progress()) -> Audit:  # noqa: B008  (it is frozen)
    """
    Raises:
        ValueError: a setting that no training can have.
    """
    architecture = read_architecture(config)
    paper = nearest_model(config, architecture)
    return Audit(
        config.origin,
        paper,
        [
            *architecture_details(config, architecture, paper),
            *loss_details(config),
            *optimizer_details(config),
            *schedule_details(config, architecture.d_model if architecture else None),
            *batch_details(config, progress),
            *length_details(config, paper, progress),
            *checkpoint_details(config, paper, progress),
            *search_details(config),
        ],
    )


def log_differences(config: Any) -> None:
    """What a training that starts, with this configuration of fairseq's, says about itself."""
    try:
        lines = list(audit(from_fairseq("this training", config)).log_lines())
    except ValueError as error:
        lines = [f"not possible: {error}"]
    for line in lines:
        logger.info(f"audit: {line}")


def audit_subject(words: Sequence[str]) -> Audit:
    """One checkpoint, one run's folder, or fairseq-train's arguments.

    Raises:
        ValueError: none of these; a file that cannot be read; arguments that fairseq-train refuses.
    """
    if any(word.startswith("-") for word in words):
        return audit(from_arguments(words))
    if len(words) != 1:
        raise UserError(
            "give one checkpoint or one run's folder, or fairseq-train's arguments after --, such as "
            "vaswani audit -- DATA --arch vaswani_base"
        )
    path = Path(words[0])
    checkpoint = _checkpoint_of(path) if path.is_dir() else path
    state = read_checkpoint(checkpoint, weights=False)
    config = Configuration(str(checkpoint), state.get("cfg") or state.get("args"))
    is_result = not path.is_dir() or checkpoint.name == "averaged.pt"
    return audit(config, read_progress(state, averaged=is_result))


def _checkpoint_of(folder: Path) -> Path:
    """The run's result where it is there: it tells of the averaging as well."""
    for name in ("averaged.pt", "checkpoint_last.pt", "checkpoints/checkpoint_last.pt"):
        if (folder / name).is_file():
            return folder / name
    others = [*folder.glob("checkpoint*.pt"), *folder.glob("checkpoints/checkpoint*.pt")]
    if not others:
        raise UserError(f"{folder} has no checkpoint: give a recipe's folder, or fairseq-train's --save-dir")
    return max(others, key=os.path.getmtime)


def _with_note(detail: Detail) -> str:
    return _shown(detail.value) + (f" ({detail.note})" if detail.note and detail.group != "search" else "")


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}" if abs(value) >= 10_000 else f"{int(value)}"
    return f"{value:g}"
