"""The workers of a training as processes of their own that take no time to start.

A server that has imported fairseq forks them, and gives each what torchrun gives its workers: rank, number of workers
and the first one's address. They are fairseq-train otherwise, real processes with real signals and exit statuses.
"""

import ctypes
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import PAPER_OPTIMISER, PLUGIN

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["fairseq_cli.train", "torch._dynamo"])  # an optimiser imports the second

TRAINING = (
    *("--user-dir", PLUGIN, "--task", "vaswani_translation", "--arch", "vaswani_tiny", *PAPER_OPTIMISER),
    *("--num-layers", 2, "--d-model", 16, "--d-ff", 32, "--num-heads", 2, "--cpu", "--num-workers", 0),
    *("--log-format", "simple", "--log-interval", 1, "--no-epoch-checkpoints"),
)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])


def children(parent: int) -> "list[int]":
    """The processes that a process has started, in the order of their numbers."""
    lists = Path(f"/proc/{parent}/task").glob("*/children")
    return sorted(int(pid) for found in lists for pid in found.read_text().split())


def _enter(namespaces: "Sequence[str]") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for path in namespaces:
        file = os.open(path, os.O_RDONLY)
        if libc.setns(file, 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")
        os.close(file)


def _work(arguments: "list[str]", log: str, environment: "dict[str, str]", namespaces: "Sequence[str]") -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    _enter(namespaces)
    os.environ.update(environment)

    import sys

    import torch
    from fairseq_cli.train import cli_main

    torch.set_num_threads(1)
    sys.argv = ["fairseq-train", *arguments]
    cli_main()


@dataclass
class Workers:
    """A running training; ``save`` is its folder of checkpoints, and beside it lies a log of each worker."""

    save: Path
    processes: "list[Any]"

    def log(self, rank: int = 0) -> str:
        path = _log(self.save, rank)
        return path.read_text() if path.exists() else ""

    def wait_for(self, text: str, rank: int = 0) -> None:
        """Until the worker's log holds ``text``; a worker that ends before fails the test."""
        end = time.monotonic() + 120
        while text not in self.log(rank):
            assert self.processes[rank].is_alive(), self.log(rank)[-4000:]
            assert time.monotonic() < end, self.log(rank)[-4000:]
            time.sleep(0.01)

    def send(self, number: signal.Signals, *ranks: int) -> None:
        for rank in ranks:
            os.kill(self.processes[rank].pid, number)

    def statuses(self, seconds: float = 120) -> "list[int]":
        """What the workers ended with, minus the number of a signal; those still there after ``seconds`` fail it."""
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
        alive = [process for process in self.processes if process.is_alive()]
        for process in alive:
            process.kill()
            process.join()
        statuses = [process.exitcode for process in self.processes]
        logs = "\n".join(self.log(rank)[-3000:] for rank in range(len(self.processes)))
        assert not alive, f"{len(alive)} workers went on for {seconds} s:\n{logs}"
        return statuses

    def done(self) -> "Workers":
        """All of them have ended well."""
        statuses = self.statuses()
        logs = "\n".join(self.log(rank)[-3000:] for rank in range(len(self.processes)))
        assert statuses == [0] * len(self.processes), logs
        return self


def _log(save: Path, rank: int) -> Path:
    return save.with_name(f"{save.name}.{rank}.log")


def start(
    binary: Path,
    save: Path,
    *extra: Any,
    count: int = 2,
    address: str = "127.0.0.1",
    namespaces: "Sequence[Sequence[str]]" = ((), ()),
    environments: "Sequence[dict[str, str]]" = ({}, {}),
    saves: "Sequence[Path]" = (),
) -> Workers:
    """Start the workers of one training; ``namespaces`` has the files of those that each worker enters first.

    ``saves`` are folders of checkpoints for workers that do not see the first one's.
    """
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": address, "MASTER_PORT": str(free_port())}
    processes = []
    for rank, (entered, own) in enumerate(zip(namespaces[:count], environments[:count])):
        ranked = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), **own} if count > 1 else own
        folder = saves[rank] if saves else save
        arguments = [str(word) for word in (binary, *TRAINING, "--save-dir", folder, *extra)]
        process = _FORKED.Process(target=_work, args=(arguments, str(_log(save, rank)), ranked, entered))
        process.start()
        processes.append(process)
    return Workers(save, processes)


def train(binary: Path, save: Path, *extra: Any, **options: Any) -> Workers:
    """One training from its start to its end."""
    return start(binary, save, *extra, **options).done()
