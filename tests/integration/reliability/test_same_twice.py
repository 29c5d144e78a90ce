"""The same command twice gives the same checkpoint bit for bit: weights, optimiser, order of the data."""

from collections.abc import Iterator
from pathlib import Path

import in_process
import pytest
import torch
from conftest import Corpus
from same_state import different_keys

UPDATES = ("--max-update", 5, "--dropout", 0.3, "--attention-dropout", 0.1, "--activation-dropout", 0.1)


def between(folder: Path, one: str, other: str) -> "list[str]":
    return different_keys(folder / one / "checkpoint_last.pt", folder / other / "checkpoint_last.pt")


@pytest.fixture
def threads() -> "Iterator[None]":
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("count", "precision"), [(1, "--mixed-precision"), (1, "--memory-efficient-fp16"), (1, "--bf16"), (2, "--cpu")]
)
def test_in_one_process(corpus: Corpus, tmp_path: Path, threads: None, count: int, precision: str) -> None:
    """``--cpu`` is float32."""
    torch.set_num_threads(count)
    for name in ("first", "second"):
        in_process.train(corpus.binary, tmp_path / name, *UPDATES, precision)
    assert between(tmp_path, "first", "second") == []


def test_another_seed_is_another_run(corpus: Corpus, tmp_path: Path) -> None:
    """That what is compared can differ."""
    for seed in (1, 2):
        in_process.train(corpus.binary, tmp_path / str(seed), *UPDATES, "--seed", seed)
    weights = [key for key in between(tmp_path, "1", "2") if key.startswith(".model.")]
    assert len(weights) > 20


def test_in_processes_of_their_own(corpus: Corpus, tmp_path: Path, threads: None) -> None:
    """With two data workers, other hashes, and another order of what the system hands out; and without the workers."""
    torch.set_num_threads(1)  # as the commands of the tests have
    flags = (*UPDATES, "--num-workers", 2, "--no-epoch-checkpoints")
    corpus.train(tmp_path / "first", *flags, "--log-interval", 100, installed=True, PYTHONHASHSEED="1")
    in_process.train(corpus.binary, tmp_path / "second", *flags)
    in_process.train(corpus.binary, tmp_path / "third", *UPDATES)
    assert between(tmp_path, "first", "second") == []
    assert between(tmp_path, "first", "third") == [".cfg.dataset.num_workers"]
