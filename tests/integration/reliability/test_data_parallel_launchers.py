"""The programs that start two workers, when they or a worker get a signal: none is left, and the log says why."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus
from worker_processes import TRAINING, children, free_port

COMMAND = Path(sys.executable).with_name("fairseq-train")
TORCHRUN = Path(sys.executable).with_name("torchrun")
SECONDS = 40  # torchrun and torch.multiprocessing kill after 30 what does not end


class Launcher:
    """A program that has started two workers of an endless training."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        self.workers: list[int] = []

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def find_workers(self) -> None:
        """The children that train, once the first has made five updates, in the order of their ranks."""
        end = time.monotonic() + 120
        while "num_updates=5," not in self.log:
            assert self.process.poll() is None, self.log[-4000:]
            assert time.monotonic() < end, self.log[-4000:]
            time.sleep(0.02)
        self.workers = [pid for pid in children(self.process.pid) if "resource_tracker" not in command_of(pid)]
        assert len(self.workers) == 2

    def end(self) -> int:
        """Its exit status, once no worker is there any more either."""
        status = self.process.wait(SECONDS)
        end = time.monotonic() + SECONDS
        while any(is_alive(pid) for pid in self.workers):
            assert time.monotonic() < end, self.log[-4000:]
            time.sleep(0.05)
        return status


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def launched(kind: str, corpus: Corpus, save: Path) -> "Iterator[Launcher]":
    sizes = ("--max-tokens", 100, "--disable-validation", "--save-interval-updates", 1, "--keep-interval-updates", 1)
    training = (corpus.binary, *TRAINING, *sizes, "--max-update", 10**6, "--save-dir", save)
    words: tuple[Any, ...] = (COMMAND, *training, "--distributed-world-size", 2)
    if kind == "torchrun":
        words = (TORCHRUN, "--nproc_per_node", 2, "--master_port", free_port(), COMMAND, *training)
    log = save.with_name("log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
    launcher = Launcher(process, log)
    try:
        launcher.find_workers()
        yield launcher
    finally:
        for pid in [*launcher.workers, *children(process.pid), process.pid]:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def to_worker(number: signal.Signals, rank: int = 1) -> "Callable[[Launcher], None]":
    return lambda launcher: os.kill(launcher.workers[rank], number)


def to_launcher(number: signal.Signals) -> "Callable[[Launcher], None]":
    return lambda launcher: os.kill(launcher.process.pid, number)


def to_all(number: signal.Signals) -> "Callable[[Launcher], None]":
    return lambda launcher: os.killpg(launcher.process.pid, number)


STOPPED = r"Stopping training due to SIGTERM after update (\d+)"
LOST = r"error: worker 0 has lost another one \(.*\)"
EVENTS: "dict[str, tuple[Callable[[Launcher], None], dict[str, int], dict[str, str]]]" = {
    # what is done, the launcher's exit status, what the log then holds
    "a worker is killed": (
        to_worker(signal.SIGKILL),
        {"torchrun": 1, "fairseq-train": 1},
        {"torchrun": LOST, "fairseq-train": rf"{LOST}|error: worker 1 was ended by SIGKILL"},
    ),
    "a worker is stopped": (
        to_worker(signal.SIGTERM),
        {"torchrun": 1, "fairseq-train": 143},
        {"torchrun": STOPPED, "fairseq-train": STOPPED},
    ),
    "the launcher is stopped": (
        to_launcher(signal.SIGTERM),
        {"torchrun": 1, "fairseq-train": 143},
        {"torchrun": STOPPED, "fairseq-train": STOPPED},
    ),
    "all are stopped": (
        to_all(signal.SIGTERM),
        {"torchrun": 1, "fairseq-train": 143},
        {"torchrun": STOPPED, "fairseq-train": STOPPED},
    ),
    "the launcher is interrupted": (
        to_launcher(signal.SIGINT),
        {"torchrun": 1, "fairseq-train": 130},
        {"torchrun": "", "fairseq-train": ""},
    ),
    "Ctrl-C": (
        to_all(signal.SIGINT),
        {"torchrun": 1, "fairseq-train": 130},
        {"torchrun": "", "fairseq-train": ""},
    ),
    "the launcher is killed": (
        to_launcher(signal.SIGKILL),
        {"torchrun": -9, "fairseq-train": -9},
        {"torchrun": STOPPED, "fairseq-train": ""},
    ),
}
# One that is always run; each starts three processes that import torch.
SHORT = ("torchrun", "the launcher is stopped")


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        pytest.param(kind, event, marks=() if (kind, event) == SHORT else pytest.mark.long)
        for kind in ("torchrun", "fairseq-train")
        for event in EVENTS
    ],
)
def test_signals(corpus: Corpus, tmp_path: Path, kind: str, event: str) -> None:
    act, statuses, told = EVENTS[event]
    with launched(kind, corpus, tmp_path / "save") as launcher:
        before = time.monotonic()
        act(launcher)
        status = launcher.end()
        print(f"{kind}, {event}: {time.monotonic() - before:.1f} s, status {status}")
        print(launcher.log[-3000:])
    assert status == statuses[kind]
    assert re.search(told[kind], launcher.log)
    if told[kind] == STOPPED:
        (reached,) = re.findall(STOPPED, launcher.log)
        state = torch.load(tmp_path / "save" / "checkpoint_last.pt", weights_only=True)
        assert state["optimizer_history"][-1]["num_updates"] == int(reached)
