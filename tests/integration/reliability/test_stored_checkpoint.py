"""What version 0.1.0 wrote keeps its meaning: weights, settings, optimiser, dictionary and vocabulary."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from in_process import interactive, train
from stored_run import CHECKPOINT, EXPECTED, MODEL, STORED, VOCABULARY, binarise, log_probabilities

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

SOURCES, TRANSLATIONS = EXPECTED["sources"], EXPECTED["translations"]
SCORES = [np.array(scores) for scores in EXPECTED["log_probabilities"]]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binarise(tmp_path_factory.mktemp("stored"))


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in STORED.rglob("*") if path.is_file()) < 150_000


def test_the_packaged_model_translates_and_scores_as_it_did() -> None:
    model = VaswaniTransformer.from_pretrained(MODEL)
    assert model.translate(SOURCES) == TRANSLATIONS
    for scored, expected in zip(model.score(SOURCES, TRANSLATIONS), SCORES):
        np.testing.assert_allclose(scored["positional_scores"].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("path", [CHECKPOINT, MODEL / "model.pt"], ids=lambda path: path.name)
def test_the_papers_formulas_give_the_same_from_the_files_matrices(path: Path) -> None:
    model = VaswaniTransformer.from_pretrained(MODEL)
    for source, translation, expected in zip(SOURCES, TRANSLATIONS, SCORES):
        ids = [model.encode(text).tolist() for text in (source, translation)]
        np.testing.assert_allclose(log_probabilities(path, *ids), expected, atol=1e-4)


def test_fairseq_interactive_reads_checkpoint_and_packaged_model(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "sources").write_text("".join(f"{source}\n" for source in SOURCES), "utf-8")
    pieces = ("-s", "en", "-t", "de", "--bpe", "sentencepiece", "--sentencepiece-model", VOCABULARY)
    for path in (CHECKPOINT, MODEL / "model.pt"):
        output = interactive(binary, path, tmp_path / "sources", *pieces).output
        assert re.findall(r"^D-\d+\t[^\t]+\t(.*)$", output, re.M) == TRANSLATIONS


def test_a_training_goes_on_from_it(binary: Path, tmp_path: Path) -> None:
    before = torch.load(CHECKPOINT, weights_only=True)
    updates = num_updates(before)
    sizes = ("--num-layers", 1, "--d-model", 8, "--d-ff", 16, "--num-heads", 2, "--dropout", 0)
    flags = ("--restore-file", CHECKPOINT, "--max-update", updates + 1, "--disable-validation")
    done = train(binary, tmp_path, *sizes, *flags)
    assert f"Loaded checkpoint {CHECKPOINT} (epoch {EXPECTED['epoch']} @ {updates} updates)" in done.output
    after = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert num_updates(after) == updates + 1
    before_moments, moments = (state["last_optimizer_state"]["state"][0] for state in (before, after))
    assert moments["step"] == before_moments["step"] + 1
    # Adam's two means, each of which tells the gradient of the one update if both went on from the stored ones.
    gradient = (moments["exp_avg"] - 0.9 * before_moments["exp_avg"]) / 0.1
    squares = (moments["exp_avg_sq"] - 0.98 * before_moments["exp_avg_sq"]) / 0.02
    torch.testing.assert_close(squares, gradient**2, atol=1e-6, rtol=1e-2)
    assert gradient.abs().max() > 1e-4


def test_the_tools_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "averaged.pt"
    assert cli.main(["average", str(CHECKPOINT), "--output", str(output)]) == 0
    mean, stored = read_checkpoint(output)["model"], read_checkpoint(CHECKPOINT)["model"]
    assert all(torch.equal(mean[name], stored[name]) for name in stored)
    assert cli.main(["audit", str(CHECKPOINT)]) == 0
    assert "details differ" in capsys.readouterr().out
