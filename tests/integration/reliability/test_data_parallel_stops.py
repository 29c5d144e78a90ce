"""Two workers of which one is killed, stopped, interrupted or cut off: both end, and the run goes on as if undisturbed.

Also on two hosts, which are network namespaces.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus
from two_hosts import Host, hosts_or_skip
from worker_processes import Workers, start, train

SAVING = ("--save-interval-updates", 1, "--disable-validation", "--max-tokens", 100)
ENDLESS = ("--max-update", 10**6)
LONGEST = 24
SECONDS = 60  # within which all have to end: much more than it takes, on a machine that does much else
HEARTBEAT = 3
GO_ON = "a training goes on from its last checkpoint when its command is given again"


def weights(path: Path) -> "dict[str, torch.Tensor]":
    return torch.load(path, weights_only=True)["model"]


def losses(log: str) -> "dict[int, str]":
    found = re.findall(r"train_inner \| .*?\bloss=([\d.]+),.*\bnum_updates=(\d+),", log)
    return {int(updates): loss for loss, updates in found}


@pytest.fixture(scope="module")
def undisturbed(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Workers:
    """A run with a checkpoint of every update."""
    save = tmp_path_factory.mktemp("undisturbed") / "save"
    return train(corpus.binary, save, *SAVING, "--max-update", LONGEST)


@pytest.fixture(scope="module")
def hosts() -> "Iterator[tuple[Host, Host]]":
    with hosts_or_skip() as both:
        yield both


def on(hosts: "tuple[Host, Host]") -> "dict[str, Any]":
    """Options that put a worker on each host."""
    return {
        "address": hosts[0].address,
        "namespaces": [host.namespaces for host in hosts],
        "environments": [{"GLOO_SOCKET_IFNAME": host.interface} for host in hosts],
    }


def begun(corpus: Corpus, folder: Path, *extra: Any, **options: Any) -> Workers:
    """A training that has made five updates and would go on for ever."""
    workers = start(corpus.binary, folder / "save", *SAVING, *ENDLESS, *extra, **options)
    workers.wait_for("num_updates=5,")
    return workers


def last_update(save: Path) -> int:
    """Of checkpoint_last.pt, which must be the newest one."""
    state = torch.load(save / "checkpoint_last.pt", weights_only=True)
    reached = int(state["optimizer_history"][-1]["num_updates"])
    assert reached == max(int(path.stem.split("_")[-1]) for path in save.glob("checkpoint_*_*.pt"))
    assert 4 <= reached <= LONGEST - 2
    return reached


def assert_right(save: Path, undisturbed: Workers, update: int) -> None:
    """The weights after ``update`` are those of the undisturbed run, bit for bit."""
    (there,), (right,) = (folder.glob(f"checkpoint_*_{update}.pt") for folder in (save, undisturbed.save))
    expected = weights(right)
    assert all(torch.equal(weight, expected[name]) for name, weight in weights(there).items())


def assert_goes_on(corpus: Corpus, save: Path, undisturbed: Workers, **options: Any) -> None:
    """The same command makes two more updates, with the undisturbed run's losses and weights."""
    reached = last_update(save)
    resumed = train(corpus.binary, save, *SAVING, "--max-update", reached + 2, **options)
    assert f"@ {reached} updates" in resumed.log()
    expected = losses(undisturbed.log())
    assert losses(resumed.log()) == {n: expected[n] for n in (reached + 1, reached + 2)}
    assert_right(save, undisturbed, reached + 2)


def assert_told(workers: Workers, rank: int, sentence: str) -> None:
    """The last word of a worker, and no other about an error."""
    assert re.search(rf"^fairseq-train: error: {sentence}; {GO_ON}\n\Z", workers.log(rank), re.MULTILINE), workers.log(
        rank
    )[-2000:]
    assert "Traceback" not in workers.log(rank)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_worker(corpus: Corpus, undisturbed: Workers, tmp_path: Path, killed: int) -> None:
    workers = begun(corpus, tmp_path)
    workers.send(signal.SIGKILL, killed)
    left = 1 - killed
    assert workers.statuses(SECONDS) == ([-signal.SIGKILL, 1] if killed == 0 else [1, -signal.SIGKILL])
    assert_told(workers, left, rf"worker {left} has lost another one \([^()]* \[127\.0\.0\.1\]:[^()]*\): .*")
    assert_goes_on(corpus, tmp_path / "save", undisturbed)


@pytest.mark.parametrize("told", [(1,), (0, 1)], ids=["one", "both"])
def test_sigterm(corpus: Corpus, undisturbed: Workers, tmp_path: Path, told: "tuple[int, ...]") -> None:
    """All workers end after the same update, with a checkpoint of it."""
    workers = begun(corpus, tmp_path)
    workers.send(signal.SIGTERM, *told)
    assert workers.statuses(SECONDS) == [143, 143]
    stopped = re.findall(r"Stopping training due to SIGTERM after update (\d+)", workers.log())
    assert [int(update) for update in stopped] == [last_update(tmp_path / "save")]
    assert not re.search("Traceback|[Ee]rror", workers.log() + workers.log(1))
    assert_right(tmp_path / "save", undisturbed, int(stopped[0]))


def test_an_interrupt(corpus: Corpus, undisturbed: Workers, tmp_path: Path) -> None:
    """Ctrl-C, which a terminal sends to all processes."""
    workers = begun(corpus, tmp_path)
    workers.send(signal.SIGINT, 0, 1)
    assert workers.statuses(SECONDS) == [130, 130]
    assert not re.search("Traceback|[Ee]rror", workers.log() + workers.log(1))
    assert_right(tmp_path / "save", undisturbed, last_update(tmp_path / "save"))


def test_a_killed_host(corpus: Corpus, hosts: "tuple[Host, Host]", undisturbed: Workers, tmp_path: Path) -> None:
    """All that ran on the second host is killed; it comes back, and sees nothing of the first one's checkpoints."""
    workers = begun(corpus, tmp_path, **on(hosts))
    workers.send(signal.SIGKILL, 1)
    assert workers.statuses(SECONDS) == [1, -signal.SIGKILL]
    address = re.escape(f"[{hosts[1].address}]")
    assert_told(workers, 0, rf"worker 0 has lost another one \([^()]* {address}:[^()]*\): .*")
    saves = (tmp_path / "save", tmp_path / "on the second host")
    assert_goes_on(corpus, tmp_path / "save", undisturbed, saves=saves, **on(hosts))
    assert not saves[1].exists()


def test_a_network_that_is_cut(
    corpus: Corpus, hosts: "tuple[Host, Host]", undisturbed: Workers, tmp_path: Path
) -> None:
    """As if the other host had lost its power, nothing tells that it has gone: the workers wait, and hear no signal."""
    workers = begun(corpus, tmp_path, "--heartbeat-timeout", HEARTBEAT, **on(hosts))
    hosts[0].run("ip", "link", "set", hosts[0].interface, "down")
    try:
        assert workers.statuses(SECONDS) == [78, 78]
    finally:
        hosts[0].run("ip", "link", "set", hosts[0].interface, "up")
    for rank in (0, 1):
        assert_told(workers, rank, rf"there was no progress for {HEARTBEAT} seconds \(--heartbeat-timeout\): .*")
    assert_right(tmp_path / "save", undisturbed, last_update(tmp_path / "save"))
