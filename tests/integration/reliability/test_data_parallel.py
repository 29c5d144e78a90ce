"""Two workers make the updates of one that accumulates twice as many batches: the same losses, the same weights."""

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus
from worker_processes import Workers, train

UPDATES = 6
COMMON = ("--dropout", 0, "--max-update", UPDATES)

# What the 120 sentences are divided into, and how many batches one of two workers has in an update.
DIVISIONS = {
    # 11 batches of 8 to 12 sentences; the second worker's sixth is a dummy
    "uneven": (("--max-tokens", 100), 1),
    # 5 batches of 24; of three each, only the second worker's last is a dummy
    "partly dummy": (("--batch-size", 24, "--max-tokens", 10_000), 3),
    # one batch: all that the second worker ever has is a dummy
    "only dummies": (("--batch-size", 120, "--max-tokens", 10_000), 1),
}
PARTS = {"float32": (), "bfloat16": ("--mixed-precision",), "unshared": ("--share-embeddings", "none")}
CASES = [
    ("uneven", "float32"),
    ("uneven", "bfloat16"),
    ("uneven", "unshared"),
    ("partly dummy", "float32"),
    ("partly dummy", "bfloat16"),
    ("only dummies", "float32"),
]
BACKENDS = ("pytorch_ddp", "legacy_ddp")


class Runs:
    """The trainings of this module, two at a time."""

    def __init__(self, corpus: Corpus, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._futures: dict[tuple[str, ...], Future[Workers]] = {}
        for division, part in CASES:
            sizes, frequency = DIVISIONS[division]
            flags = (*COMMON, *sizes, *PARTS[part])

            def start(*name: str, count: int, frequency: int, extra: Any = (), flags: Any = flags) -> None:
                save = folder / " ".join(name).replace(" ", "_")
                all_flags = (*flags, "--update-freq", frequency, *extra)
                self._futures[name] = pool.submit(train, corpus.binary, save, *all_flags, count=count)

            start(division, part, "alone", count=1, frequency=2 * frequency)
            for backend in BACKENDS:
                start(division, part, backend, count=2, frequency=frequency, extra=("--ddp-backend", backend))

    def __getitem__(self, name: "tuple[str, ...]") -> Workers:
        return self._futures[name].result()


@pytest.fixture(scope="module")
def runs(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield Runs(corpus, tmp_path_factory.mktemp("parallel"), pool)


def state(run: Workers) -> "dict[str, Any]":
    return torch.load(run.save / "checkpoint_last.pt", weights_only=True)


def losses(run: Workers) -> "list[float]":
    return [float(loss) for loss in re.findall(r"train_inner \| .*?\bloss=([\d.]+)", run.log())]


def sentences(run: Workers) -> "list[float]":
    return [float(size) for size in re.findall(r"train_inner \| .*?\bbsz=([\d.]+)", run.log())]


def validation(run: Workers) -> "list[float]":
    return [float(loss) for loss in re.findall(r"\| valid \| .*?\bloss ([\d.]+)", run.log())]


def mean_loss(run: Workers) -> float:
    """Of the last epoch that was logged, with all its digits."""
    for _, key, _, meter in state(run)["extra_state"]["metrics"]["train"]:
        if key == "loss":
            return float(meter["sum"] / meter["count"])
    raise AssertionError("no loss")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("division", "part"), CASES)
def test_two_workers_are_one_that_accumulates(runs: Runs, division: str, part: str, backend: str) -> None:
    """One batch of each worker: bit for bit, as half of a sum, doubled again, is the sum. Three: in another order.

    Then a last bit may differ, and in mixed precision so may what a weight close to the middle is rounded to.
    """
    exact = DIVISIONS[division][1] == 1
    of_loss, of_weights = (1e-6, 1e-7) if part == "float32" else (5e-5, 2e-4)
    one, two = runs[division, part, "alone"], runs[division, part, backend]
    assert sum(sentences(one)[: len(sentences(one)) // 2]) >= 60
    assert sentences(two) == sentences(one)
    assert len(losses(one)) == UPDATES
    assert losses(two) == pytest.approx(losses(one), abs=1.1e-3)  # as printed
    assert mean_loss(two) == pytest.approx(mean_loss(one), rel=1e-6 if exact else of_loss)
    assert len(validation(one)) > 0
    assert validation(two) == pytest.approx(validation(one), abs=1.1e-3)
    before, after = state(one), state(two)
    weights, others = (torch.cat([w.flatten() for w in run["model"].values()]) for run in (before, after))
    assert before["model"].keys() == after["model"].keys()
    assert (others - weights).norm() <= (0.0 if exact else of_weights) * weights.norm()


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_workers(
    corpus: Corpus, runs: Runs, tmp_path: Path, before: int, after: int
) -> None:
    """From within an epoch, as when one of two machines is lost: no batch comes twice and none is left out."""
    sizes, _ = DIVISIONS["uneven"]
    for count, updates in ((before, UPDATES // 2), (after, UPDATES)):
        flags = (*COMMON, *sizes, "--update-freq", 2 // count, "--max-update", updates)
        run = train(corpus.binary, tmp_path / "save", *flags, count=count)
    straight = runs["uneven", "float32", "alone"]
    assert losses(run) == losses(straight)[UPDATES // 2 :]
    expected = state(straight)["model"]
    assert all(torch.equal(weight, expected[name]) for name, weight in state(run)["model"].items())
