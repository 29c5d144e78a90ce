"""Checkpoints that are diverged, incomplete or another model's, in the commands that read them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus, Run
from in_process import call, generate, refusal, train

from vaswani_plugin import cli


@pytest.fixture(scope="module")
def state(trained: Run) -> "dict[str, Any]":
    return torch.load(trained.last, weights_only=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("weights", ["all", "one"])
def test_weights_that_are_no_numbers_are_told_at_generation(
    corpus: Corpus, state: "dict[str, Any]", tmp_path: Path, value: float, weights: str
) -> None:
    name = "decoder.stack.layers.1.feed_forward.inner.weight"
    spoilt = {
        key: tensor * value if weights == "all" or key == name else tensor for key, tensor in state["model"].items()
    }
    path = tmp_path / "diverged.pt"
    torch.save({**state, "model": spoilt}, path)
    first, tensor = next((key, tensor) for key, tensor in spoilt.items() if not tensor.isfinite().all())
    found = "NaN" if tensor.isnan().any() else "infinite"
    assert refusal(generate(corpus.binary, path, status=1), "fairseq-generate") == (
        f"{path}: the weight {first} is {found}, so its training had diverged; name an earlier checkpoint"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": None}, "{} holds no model, so it is not a fairseq checkpoint"),
        ({"model": [1]}, "{} holds no model, so it is not a fairseq checkpoint"),
        ({"cfg": {}}, "{} does not hold the settings of its model; name a checkpoint as a training wrote it"),
        ({"cfg": 3}, "{} does not hold the settings of its model; name a checkpoint as a training wrote it"),
        ({"extra_state": None}, "{} is no whole fairseq checkpoint (TypeError: "),
        ({"optimizer_history": []}, "{} is no whole fairseq checkpoint (IndexError: "),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_incomplete_ones(
    corpus: Corpus, state: "dict[str, Any]", tmp_path: Path, changes: "dict[str, Any]", sentence: str
) -> None:
    path = tmp_path / "part.pt"
    torch.save({**state, **changes}, path)
    assert refusal(generate(corpus.binary, path, status=1), "fairseq-generate").startswith(sentence.format(path))
    done = train(corpus.binary, tmp_path / "save", "--restore-file", path, status=1)
    assert refusal(done, "fairseq-train").startswith(sentence.format(path))
    assert list((tmp_path / "save").glob("*")) == []


def test_weights_without_settings(corpus: Corpus, state: "dict[str, Any]", tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({**state, "cfg": None}, path)
    done = generate(corpus.binary, path, status=1)
    assert refusal(done, "fairseq-generate").startswith(
        f"{path} does not hold the settings of its model, only weights;"
    )


def test_one_of_an_ensemble_is_missing(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    done = generate(corpus.binary, f"{trained.last}:{tmp_path / 'no.pt'}", status=1)
    assert refusal(done, "fairseq-generate") == f"Model file not found: {tmp_path / 'no.pt'}"


def test_other_sizes_by_overrides_are_named(corpus: Corpus, trained: Run) -> None:
    done = generate(corpus.binary, trained.last, "--model-overrides", "{'d_model': 32}", status=1)
    sentence = refusal(done, "fairseq-generate")
    assert sentence.startswith(f"the weights in {trained.last} do not fit the model (the checkpoint has --d-model 16, ")
    assert "this run --d-model 32" in sentence


def test_dictionaries_that_differ_while_embeddings_are_shared(corpus: Corpus, tmp_path: Path) -> None:
    for side, line in (("en", "a b c"), ("de", "x y")):
        (tmp_path / f"train.{side}").write_text(f"{line}\n" * 5)
    call(
        "fairseq-preprocess",
        "-s",
        "en",
        "-t",
        "de",
        "--trainpref",
        tmp_path / "train",
        "--destdir",
        tmp_path / "binary",
    )
    done = train(tmp_path / "binary", tmp_path / "save", "--disable-validation", status=1)
    # 4 special symbols and 3 or 2 words, filled up to a multiple of 8
    assert refusal(done, "fairseq-train") == (
        "--share-embeddings all needs one dictionary for both languages, but the source's has 8 entries and the "
        "target's 8, not the same ones: run fairseq-preprocess again with --joined-dictionary, or train with "
        "--share-embeddings decoder"
    )
    train(tmp_path / "binary", tmp_path / "save", "--disable-validation", "--share-embeddings", "decoder")


@pytest.mark.parametrize("kind", ["missing", "truncated", "foreign", "text", "folder"])
def test_an_averaged_set_with_a_bad_one(
    trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    bad, output = tmp_path / f"{kind}.pt", tmp_path / "averaged.pt"
    if kind == "truncated":
        bad.write_bytes(trained.last.read_bytes()[:-1000])
    elif kind == "foreign":
        torch.save({"model": {"weight": torch.zeros(2)}}, bad)
    elif kind == "text":
        bad.write_text("no checkpoint\n")
    elif kind == "folder":
        bad.mkdir()
    assert cli.main(["average", str(trained.last), str(bad), "--output", str(output)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("vaswani average: ")
    assert str(bad) in error
    assert error.count("\n") == 1
    assert not [path for path in tmp_path.iterdir() if path != bad]
