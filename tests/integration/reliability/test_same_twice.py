"""The same command twice gives the same checkpoint bit for bit: weights, optimiser, order of the data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process
import pytest
import torch
from conftest import Corpus
from test_numbers_resumed import same

UPDATES = ("--max-update", 6, "--dropout", 0.3, "--attention-dropout", 0.1, "--activation-dropout", 0.1)


def written(folder: Path) -> Any:
    """What a checkpoint holds, without the times that it took and its own folder."""
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    del state["extra_state"]["metrics"], state["extra_state"]["previous_training_time"]
    del state["cfg"]["checkpoint"]["save_dir"]
    return state


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
    assert same(written(tmp_path / "first"), written(tmp_path / "second"))


def test_another_seed_is_another_run(corpus: Corpus, tmp_path: Path) -> None:
    """That what is compared can differ."""
    for seed in (1, 2):
        in_process.train(corpus.binary, tmp_path / str(seed), *UPDATES, "--seed", seed)
    assert not same(written(tmp_path / "1")["model"], written(tmp_path / "2")["model"])


def test_in_processes_of_their_own(corpus: Corpus, tmp_path: Path) -> None:
    """Two data workers each, other hashes and another order of what the system hands out; and none of them."""
    for name, hashes in (("first", "1"), ("second", "2")):
        corpus.train(tmp_path / name, *UPDATES, "--num-workers", 2, PYTHONHASHSEED=hashes)
    first, second = written(tmp_path / "first"), written(tmp_path / "second")
    assert same(first, second)
    in_process.train(corpus.binary, tmp_path / "third", *UPDATES)
    assert same(first["model"], written(tmp_path / "third")["model"])
