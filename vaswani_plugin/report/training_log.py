"""What fairseq-train has logged: statistics, settings, and how the run stands."""

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from vaswani_plugin.data.text_files import raw_lines

Statistics = dict[str, float]

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \| (\w+) \| ([\w.]+) \| (.*)", re.DOTALL)
# --log-format simple: "epoch 001:  100 / 132 loss=8.1, ppl=90" and "epoch 001 | valid on 'valid' subset | loss 8.1".
_TRAINING_VALUE = re.compile(r"(\w+)=([^,\s]+)")
_VALIDATION_VALUE = re.compile(r"\| (\w+) ([^|\s]+)(?= \||$)")
_SETTING = re.compile(r"'(\w+)': ('[^']*'|[^,{}]+)")
_COMMAND = re.compile(r"(vaswani_plugin \S.*); started as: (.*)", re.DOTALL)
_REMARKS_SHOWN = 12


@dataclass
class TrainingLog:
    """``training`` and ``validation`` have one entry for each logged update, in the order of updates.

    The keys are fairseq's without "valid_": loss, nll_loss, ppl, wps, lr, num_updates, bleu and others. ``remarks``
    are the last warnings and errors, and what stands after the last message, where a crash leaves its reason.
    """

    path: Path
    training: list[Statistics] = field(default_factory=list)
    validation: list[Statistics] = field(default_factory=list)
    model: dict[str, str] = field(default_factory=dict)
    schedule: dict[str, str] = field(default_factory=dict)
    optimization: dict[str, str] = field(default_factory=dict)
    versions: str = ""
    command: str = ""
    first_time: str = ""
    last_time: str = ""
    finished: bool = False
    remarks: list[str] = field(default_factory=list)

    @property
    def updates(self) -> int:
        """The last update that is told of."""
        return max((int(entry["num_updates"]) for entry in (*self.training, *self.validation)), default=0)

    @property
    def max_update(self) -> Optional[int]:
        value = self.optimization.get("max_update", "")
        return int(value) if value.isdigit() and int(value) > 0 else None


def read_training_log(path: Path) -> TrainingLog:
    """Reads a log of any of fairseq's formats, also one that is still being written, or of several starts.

    Where an update was logged twice, as after a crash and a resumption, the later line counts.
    """
    log = TrainingLog(path)
    training: dict[int, Statistics] = {}
    validation: dict[int, Statistics] = {}
    continued: list[str] = []
    trouble = False
    for raw in raw_lines(path):
        line = raw.decode("utf-8", "replace").rstrip()
        matched = _LINE.fullmatch(line)
        if matched is None:
            continued += [line] if line else []
            continue
        time, level, name, text = matched.groups()
        log.first_time, log.last_time = log.first_time or time, time
        # Lines without a head belong to the message before them: a model's layers, or a traceback.
        log.remarks += continued if trouble else []
        continued, trouble = [], level not in ("INFO", "DEBUG")
        log.remarks += [line] if trouble else []
        if name == "train_inner":
            _keep(training, _statistics(text, _TRAINING_VALUE.findall))
        elif name == "valid":
            _keep(validation, _statistics(text, _VALIDATION_VALUE.findall))
        elif name == "fairseq_cli.train" and text.startswith("{'"):
            log.model, log.schedule = _settings(text, "model"), _settings(text, "lr_scheduler")
            log.optimization = _settings(text, "optimization")
            # What was said before belongs to an earlier start.
            log.finished, log.remarks = False, []
        elif name == "fairseq_cli.train" and text.startswith("done training in"):
            log.finished = True
        elif started := _COMMAND.fullmatch(text):
            log.versions, log.command = started.groups()
    # What follows the last message of all is how a run that was broken off has ended.
    log.remarks += continued
    log.training = [training[update] for update in sorted(training)]
    log.validation = [validation[update] for update in sorted(validation)]
    del log.remarks[:-_REMARKS_SHOWN]
    return log


def is_training_log(path: Path) -> bool:
    """Whether fairseq-train has written here."""
    return any(b"| INFO | fairseq_cli.train |" in line for line in _first(raw_lines(path), 200))


def _first(lines: Iterable[bytes], count: int) -> Iterable[bytes]:
    return (line for _, line in zip(range(count), lines))


def _keep(entries: dict[int, Statistics], entry: Statistics) -> None:
    if math.isfinite(entry.get("num_updates", math.nan)):
        entries[int(entry["num_updates"])] = entry


def _statistics(text: str, pairs: Callable[[str], list[tuple[str, str]]]) -> Statistics:
    """Numbers of one line by name; {} for a line that is cut off."""
    named: Iterable[tuple[str, object]] = pairs(text)
    if text.startswith("{"):
        try:
            named = json.loads(text).items()
        except (ValueError, RecursionError):
            return {}
    found = {}
    for name, value in named:
        try:
            found[name.removeprefix("valid_")] = float(str(value))
        except ValueError:
            continue
    return found


def _settings(text: str, section: str) -> dict[str, str]:
    """One part of the configuration as fairseq prints it, which is neither JSON nor quite Python."""
    part = re.search(rf"'{section}': {{(.*?)}}", text)
    if part is None:
        return {}
    return {name: value.strip("' ") for name, value in _SETTING.findall(part[1])}
