"""What a worker says that cannot reach the others, of what torch said."""

import re
import socket
import threading
from pathlib import Path

import pytest
import torch
from conftest import Corpus
from worker_processes import start

GLOO = "[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] "
ADVICE = ". This is typically caused by a remote worker crashing. Check the logs of the remote worker"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f"{GLOO}Connection closed by peer [10.0.0.2]:2327{ADVICE}", "Connection closed by peer [10.0.0.2]:2327"),
        (f"{GLOO}Timed out waiting 1800000ms for recv", "Timed out waiting 1800000ms for recv"),
        (f"Gloo failed with {GLOO}timed out connecting", "Gloo failed with timed out connecting"),
        ("NCCL error: remote process exited\nLast error:\n", "NCCL error: remote process exited"),
    ],
)
def test_words_of_torch_become_a_sentence(said: str, reason: str) -> None:
    from fairseq.lost_worker import LostWorker, tells_lost_workers, tells_no_connection

    bracketed = re.escape(f"({reason})")
    with pytest.raises(LostWorker, match=f"^worker 3 has lost another one {bracketed}: that "), tells_lost_workers(3):
        raise RuntimeError(said)
    with pytest.raises(LostWorker, match=f"^worker 0 could not be .* {bracketed}: the first"), tells_no_connection(0):
        raise RuntimeError(said)


def test_other_errors_pass() -> None:
    from fairseq.lost_worker import tells_lost_workers

    error = RuntimeError("The size of tensor a (2) must match the size of tensor b (3)")
    with pytest.raises(RuntimeError) as caught, tells_lost_workers(0):
        raise error
    assert caught.value is error


def test_a_port_that_is_in_use(corpus: Corpus, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = {"MASTER_PORT": str(taken.getsockname()[1])}
        workers = start(corpus.binary, tmp_path / "save", "--max-update", 1, environments=[port])
        assert workers.statuses() == [1]
    last = workers.log().split("\n")[-2]
    assert re.match(r"fairseq-train: error: worker 0 could not be connected .* already in use", last), last


def test_time_without_progress_is_counted_between_batches_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first batch on, and not after the training."""
    from fairseq.distributed import distributed_timeout_wrapper as module

    ended = threading.Event()
    monkeypatch.setattr(module, "end_for_lack_of_progress", lambda seconds: ended.set())
    others = set(threading.enumerate())
    model = module.DistributedTimeoutWrapper(torch.nn.Linear(1, 1), timeout=0.01)
    (watch,) = set(threading.enumerate()) - others
    watch.join(0.1)
    assert watch.is_alive()
    assert not ended.is_set()
    model(torch.zeros(1))
    assert ended.wait(60)

    ended.clear()
    model = module.DistributedTimeoutWrapper(torch.nn.Linear(1, 1), timeout=10**6)
    model(torch.zeros(1))
    (watch,) = set(threading.enumerate()) - others - {watch}
    del model
    watch.join(60)
    assert not watch.is_alive()
    assert not ended.is_set()
