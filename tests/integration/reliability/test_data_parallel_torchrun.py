"""Two hosts with a torchrun each, as docs/many_gpus_and_nodes.md starts them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus
from two_hosts import Host, hosts_or_skip
from worker_processes import TRAINING, children, free_port, train

SIZES = ("--max-tokens", 100, "--disable-validation", "--save-interval-updates", 1)
TORCHRUN, COMMAND = (Path(sys.executable).with_name(name) for name in ("torchrun", "fairseq-train"))
SECONDS = 120

pytestmark = pytest.mark.long


@pytest.fixture
def hosts() -> "Iterator[tuple[Host, Host]]":
    with hosts_or_skip() as both:
        yield both


@contextmanager
def torchruns(hosts: "tuple[Host, Host]", corpus: Corpus, save: Path, *extra: Any) -> "Iterator[Any]":
    """The two processes; their logs are ``save`` with .0 and .1 after it."""
    port, processes = free_port(), []
    for rank, host in enumerate(hosts):
        words = host.command(
            *(TORCHRUN, "--nnodes", 2, "--node_rank", rank, "--nproc_per_node", 1),
            *("--master_addr", hosts[0].address, "--master_port", port),
            *(COMMAND, corpus.binary, *TRAINING, *SIZES, "--save-dir", save, *extra),
        )
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": host.interface}
        with open(f"{save}.{rank}", "wb") as log:
            processes.append(
                subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            )
    try:
        yield processes
    finally:
        for process in processes:
            for pid in (*children(process.pid), process.pid):
                if Path(f"/proc/{pid}").exists():
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def log(save: Path, rank: int) -> str:
    return Path(f"{save}.{rank}").read_text(errors="replace")


def weights(save: Path) -> "dict[str, torch.Tensor]":
    return torch.load(save / "checkpoint_last.pt", weights_only=True)["model"]


def test_a_killed_host_and_the_same_commands_again(corpus: Corpus, hosts: "tuple[Host, Host]", tmp_path: Path) -> None:
    """What the second host runs is killed: the first host's end, and both go on when started again."""
    save = tmp_path / "save"
    with torchruns(hosts, corpus, save, "--max-update", 10**6) as (first, second):
        end = time.monotonic() + SECONDS
        while "num_updates=5," not in log(save, 0):
            assert first.poll() is None, log(save, 0)[-4000:]
            assert time.monotonic() < end, log(save, 0)[-4000:]
            time.sleep(0.05)
        for pid in (second.pid, *children(second.pid)):
            os.kill(pid, signal.SIGKILL)
        before = time.monotonic()
        assert first.wait(SECONDS) == 1
        print(f"the first host's torchrun ended {time.monotonic() - before:.1f} s after the second host was killed")
    assert "fairseq-train: error: worker 0 has lost another one (" in log(save, 0)
    state = torch.load(save / "checkpoint_last.pt", weights_only=True)
    until = state["optimizer_history"][-1]["num_updates"] + 3
    with torchruns(hosts, corpus, save, "--max-update", until) as both:
        assert [process.wait(SECONDS) for process in both] == [0, 0], log(save, 0)[-4000:]
    undisturbed = train(corpus.binary, tmp_path / "undisturbed", *SIZES, "--max-update", until)
    expected = weights(undisturbed.save)
    assert all(torch.equal(weight, expected[name]) for name, weight in weights(save).items())
