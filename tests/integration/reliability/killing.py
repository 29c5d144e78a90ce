"""Commands that are killed, with all their processes, at a moment that chance has drawn.

A moment is a number of seconds after the start, or after the n-th time that a name of a pattern appears in a folder:
so that kills also meet what takes a thousandth of the whole time.
"""

import contextlib
import fnmatch
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a start may take at most, in seconds.
_LONGEST = 600.0
# How often a folder is looked into, and whether the command has ended.
_STEP, _LOOK = 0.0005, 0.02


@dataclass(frozen=True)
class Moment:
    """``seconds`` after the start, or after names of ``pattern`` in ``folder`` have appeared ``times`` times."""

    seconds: float
    pattern: str = ""
    folder: "Path | None" = None
    times: int = 1

    def __str__(self) -> str:
        after = f"{self.times} x {self.pattern}" if self.folder else "the start"
        return f"{self.seconds * 1000:.1f} ms after {after}"


@dataclass
class Start:
    """How a start of a command ended: ``status`` is None when it was killed. ``output`` has both of its streams."""

    status: "int | None"
    output: str
    seconds: float


def start(
    command: Sequence[Any],
    moment: "Moment | None" = None,
    how: int = signal.SIGKILL,
    *,
    environment: "Mapping[str, str] | None" = None,
    cwd: "Path | None" = None,
    log: Path,
) -> Start:
    """Run a command in a process group of its own, and send ``how`` to the group at the moment, if there is one.

    A killed command is waited for until no process of the group lives; another signal's command ends by itself.
    """
    own_group: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}
    begun = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            cwd=cwd,
            **own_group,
        )
    killed = False
    try:
        if moment is not None and _wait_for(moment, process, begun):
            killed = how == signal.SIGKILL
            os.killpg(process.pid, how)
        if not killed:
            process.wait(_LONGEST)
    finally:
        _end_group(process)
    text = log.read_bytes().decode("utf-8", "replace")
    return Start(None if killed else process.returncode, text, time.monotonic() - begun)


def _wait_for(moment: Moment, process: "subprocess.Popen[bytes]", begun: float) -> bool:
    """Whether the moment came while the command ran."""
    seen: set[tuple[str, int]] = set()
    missing = moment.times if moment.folder else 0
    before = _names(moment) if moment.folder else set()
    since = begun
    while True:
        if process.poll() is not None:
            return False
        assert time.monotonic() - begun < _LONGEST, f"{moment} has not come"
        if missing:
            now = _names(moment)
            new = now - before - seen
            before &= now  # a name that went and came again is a new one
            seen = (seen | new) & now
            missing -= len(new)
            if missing <= 0:
                missing, since = 0, time.monotonic()
        left = since + moment.seconds - time.monotonic()
        if not missing and left <= 0:
            return True
        time.sleep(_STEP if missing else min(left, _LOOK))


def _names(moment: Moment) -> "set[tuple[str, int]]":
    assert moment.folder is not None
    try:
        with os.scandir(moment.folder) as entries:
            return {(each.name, each.inode()) for each in entries if fnmatch.fnmatch(each.name, moment.pattern)}
    except FileNotFoundError:
        return set()


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what of the group still lives, also what joins it late, until nothing does."""
    while members := _living(process.pid):
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_STEP)
    process.wait()


def _living(group: int) -> "list[int]":
    """The processes of a group that have not ended, as /proc tells them."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


@dataclass
class Account:
    """What was done to a command, for the reader of a test's output; the same ``what`` draws the same moments."""

    what: str
    kills: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.what)

    def note(self, moment: Moment, start: Start, state: str) -> None:
        self.kills += start.status is None
        print(f"{self.what}: {'killed' if start.status is None else 'ended before'} {moment}; {state}")


def killed_until_done(
    command: Sequence[Any],
    account: Account,
    kills: int,
    draw: "Callable[[random.Random], Moment]",
    check: "Callable[[Start], str]",
    **options: Any,
) -> Start:
    """Start and kill a command until that was done ``kills`` times, then let it end.

    ``check`` looks at what each start has left, and says it in a few words. A start may end before its moment; that
    many more at most are tried.
    """
    for _ in range(2 * kills):
        if account.kills == kills:
            break
        moment = draw(account.random)
        done = start(command, moment, **options)
        assert done.status in (None, 0), done.output[-4000:]
        account.note(moment, done, check(done))
    assert account.kills == kills, f"only {account.kills} of {kills} kills came before the end"
    done = start(command, **options)
    assert done.status == 0, done.output[-4000:]
    check(done)
    return done
