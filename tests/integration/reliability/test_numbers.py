"""NaN and infinity in training end it in a sentence, and are in no checkpoint."""

import math
from pathlib import Path
from typing import Any

import in_process
import pytest
import torch
from conftest import Corpus
from fairseq import finite_numbers
from fairseq.tasks.translation import TranslationTask
from in_process import call, generate, refusal
from spoilt_training import (
    ADVICE,
    HALF,
    WEIGHT,
    gradient_of,
    loss_times,
    spoil,
    spoil_checkpoint,
    updates_in,
)

EVERY_UPDATE = ("--save-interval-updates", 1, "--max-update", 4)


@pytest.fixture(scope="module")
def good(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with which nothing is wrong."""
    folder = tmp_path_factory.mktemp("good")
    in_process.train(corpus.binary, folder, "--max-update", 2)
    return folder / "checkpoint_last.pt"


def sentence(corpus: Corpus, folder: Path, *flags: object) -> str:
    """Of a training that must end in one."""
    done = in_process.train(corpus.binary, folder, *EVERY_UPDATE, *flags, status=1)
    assert not (folder / "crash.pt").exists()
    return refusal(done, "fairseq-train")


@pytest.mark.parametrize(
    ("precision", "value", "name"),
    [
        ((), math.inf, "infinite"),
        ((), math.nan, "NaN"),
        (("--mixed-precision",), math.nan, "NaN"),
        (("--bf16",), math.inf, "infinite"),
        (("--memory-efficient-bf16",), math.inf, "infinite"),
    ],
)
def test_the_loss(
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: "tuple[str, ...]",
    value: float,
    name: str,
) -> None:
    spoil(monkeypatch, loss_times(value), {3})
    last = tmp_path / "checkpoint_last.pt"
    assert sentence(corpus, tmp_path, *precision) == f"update 3: the loss is {name}{ADVICE}; {last} is from before"
    assert updates_in(last) == 2
    assert {path.name for path in tmp_path.iterdir()} == {
        *("checkpoint_last.pt", "checkpoint_best.pt", "checkpoint_1_1.pt", "checkpoint_1_2.pt")
    }


@pytest.mark.parametrize("flags", [(), ("--clip-norm", 1.0), ("--bf16",), ("--bf16", "--clip-norm", 1.0)])
@pytest.mark.parametrize(("value", "name"), [(math.inf, "infinite"), (math.nan, "NaN")])
def test_a_gradient(
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: "tuple[object, ...]",
    value: float,
    name: str,
) -> None:
    """The weight is named whose gradient it is, also where the clipping has had the norm."""
    spoil(monkeypatch, gradient_of(WEIGHT, value), {1})
    expected = f"update 1: the gradient of {WEIGHT} is {name} though the loss is finite{ADVICE}"
    assert sentence(corpus, tmp_path, *flags) == expected
    assert list(tmp_path.iterdir()) == []


def test_a_norm_beyond_float32(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, gradient_of(WEIGHT, 1e30), {1})
    assert sentence(corpus, tmp_path) == (
        f"update 1: the norm of the gradient is not finite though each of its numbers is{ADVICE}"
    )


@pytest.mark.parametrize("validation", [(), ("--disable-validation",)])
def test_weights_that_an_update_made_so_are_not_saved(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validation: "tuple[str, ...]"
) -> None:
    """Whether or not a validation comes first."""
    original = TranslationTask.optimizer_step

    def spoiling(self: Any, optimizer: Any, model: Any, update_num: int) -> None:
        original(self, optimizer, model, update_num)
        if update_num == 2:
            dict(model.named_parameters())[WEIGHT].data[0, 0] = math.nan

    monkeypatch.setattr(TranslationTask, "optimizer_step", spoiling)
    last = tmp_path / "checkpoint_last.pt"
    expected = f"after update 3 the weight {WEIGHT} is NaN{ADVICE}; {last} is from before"
    assert sentence(corpus, tmp_path, *validation) == expected
    assert updates_in(last) == 2


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1e20, "after update 3 the loss of valid is NaN though all weights are finite"),
        (1e300, "update 3: the learning rate 7.5e+296 makes a step beyond float32"),
    ],
)
def test_a_learning_rate_that_diverges(corpus: Corpus, tmp_path: Path, factor: float, expected: str) -> None:
    """What a former command wrote stays as it is, to the last bit."""
    last = tmp_path / "checkpoint_last.pt"
    in_process.train(corpus.binary, tmp_path, "--max-update", 2)
    before = last.read_bytes()
    assert sentence(corpus, tmp_path, "--lr-factor", factor) == f"{expected}{ADVICE}; {last} is from before"
    assert last.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint_best.pt", "checkpoint_last.pt"]


@pytest.mark.parametrize(("value", "name"), [(math.inf, "infinite"), (math.nan, "NaN")])
def test_a_validation(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, name: str) -> None:
    """That after the second update, each validation being of two batches: nothing of it is saved."""
    spoil(monkeypatch, loss_times(value), {3}, training=False)
    last = tmp_path / "checkpoint_last.pt"
    assert sentence(corpus, tmp_path) == (
        f"after update 2 the loss of valid is {name} though all weights are finite{ADVICE}; {last} is from before"
    )
    assert updates_in(last) == updates_in(tmp_path / "checkpoint_best.pt") == 1


def test_a_checkpoint(corpus: Corpus, good: Path, tmp_path: Path) -> None:
    """Told before anything is computed with it, by all that read checkpoints, and never written over."""
    spoilt = tmp_path / "save" / "checkpoint_last.pt"
    spoil_checkpoint(good, spoilt, WEIGHT, math.nan)
    before = spoilt.read_bytes()
    found = f"{spoilt}: the weight {WEIGHT} is NaN, so its training had diverged; "
    resume = f"{found}go on from an earlier checkpoint with --restore-file"
    assert sentence(corpus, spoilt.parent) == resume
    for flag in ("--restore-file", "--finetune-from-model"):
        assert sentence(corpus, tmp_path / "other", flag, spoilt) == resume
    assert spoilt.read_bytes() == before
    assert list((tmp_path / "other").iterdir()) == []
    assert (
        refusal(generate(corpus.binary, spoilt, status=1), "fairseq-generate") == f"{found}name an earlier checkpoint"
    )
    plugin = ("--user-dir", in_process.PLUGIN, "--task", "vaswani_translation", "--cpu", "--max-tokens", 200)
    done = call("fairseq-validate", corpus.binary, *plugin, "--path", spoilt, status=1)
    assert refusal(done, "fairseq-validate") == f"{found}name an earlier checkpoint"


def test_an_optimisers_state(corpus: Corpus, good: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.pt"
    spoil_checkpoint(good, spoilt, None, math.inf, "exp_avg_sq")
    assert sentence(corpus, tmp_path / "save", "--restore-file", spoilt) == (
        f"{spoilt}: the optimiser's exp_avg_sq of parameter 3 is infinite, so its training had diverged; go on from an "
        "earlier checkpoint with --restore-file, or add --reset-optimizer"
    )
    in_process.train(corpus.binary, tmp_path / "save", "--restore-file", spoilt, "--reset-optimizer")
    assert updates_in(tmp_path / "save" / "checkpoint_last.pt") == 1


def test_validate_says_that_its_loss_is_no_number(corpus: Corpus, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, loss_times(math.nan), training=False)
    plugin = ("--user-dir", in_process.PLUGIN, "--task", "vaswani_translation", "--cpu", "--max-tokens", 200)
    done = call("fairseq-validate", corpus.binary, *plugin, "--path", good, status=1)
    assert refusal(done, "fairseq-validate") == (
        f"{good}: the loss of valid is NaN though all weights are finite; leave --fp16 out, or look for odd "
        "sentences in valid"
    )


HALF_FLAGS = ("--memory-efficient-fp16", "--fp16-init-scale", 128, "--log-interval", 1)


def test_float16_skips_a_batch_and_halves_the_scale(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, loss_times(math.inf), {2})
    done = in_process.train(corpus.binary, tmp_path, *HALF_FLAGS, "--max-update", 3)
    assert done.output.count("gradient overflow detected, ignoring gradient, setting loss scale to: 64.0") == 1
    assert updates_in(tmp_path / "checkpoint_last.pt") == 3
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["last_optimizer_state"]
    assert state["loss_scale"] == 64.0
    # four batches: the skipped one was the second
    assert (state["loss_scaler"]["_iter"], state["loss_scaler"]["_last_overflow_iter"]) == (4, 1)


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--min-loss-scale", 8), " even with the loss scale at --min-loss-scale 8.0"),
        (("--threshold-loss-scale", 16), ", as in the 9 batches before, which were skipped"),
    ],
)
def test_float16_does_not_skip_for_ever(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: "tuple[object, ...]", what: str
) -> None:
    spoil(monkeypatch, loss_times(math.nan))
    assert finite_numbers._MOST_SKIPPED == 100
    monkeypatch.setattr(finite_numbers, "_MOST_SKIPPED", 10)
    expected = f"update 1: the loss is NaN{what}{ADVICE}{HALF}"
    assert sentence(corpus, tmp_path, *HALF_FLAGS, *flags, "--disable-validation", "--no-save") == expected


def test_float16_names_a_gradient(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, gradient_of(WEIGHT, math.inf))
    assert sentence(corpus, tmp_path, *HALF_FLAGS, "--min-loss-scale", 64) == (
        f"update 1: the gradient of {WEIGHT} is infinite though the loss is finite even with the loss scale at "
        f"--min-loss-scale 64.0{ADVICE}{HALF}"
    )


def test_float16_does_not_skip_where_a_weight_is_no_number(corpus: Corpus, tmp_path: Path) -> None:
    """A step of 10^9 is beyond float16: each batch from then on would be skipped."""
    flags = ("--lr-factor", 1e9, "--warmup-updates", 1, "--save-interval-updates", 100)
    expected = f"after update 1 the weight encoder.embedding.weight is infinite{ADVICE}{HALF}"
    assert sentence(corpus, tmp_path, *HALF_FLAGS, *flags) == expected
    assert list(tmp_path.iterdir()) == []
