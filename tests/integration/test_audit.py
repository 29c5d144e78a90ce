"""What a real training says of itself when it starts, and what is found in what it has saved."""

import json
import re
from pathlib import Path

import pytest
from conftest import Corpus, Run, run

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.averaging import average_checkpoints

SMALL = "N 2, not 6; d_model 16, not 512; d_ff 32, not 2048; h 2, not 8; d_k 8, not 64; d_v 8, not 64"
STARTED = [
    f"{SMALL}, as in the paper's base model (3.1, 3.2.2, 3.3)",
    "warm-up 100, the paper 4000 (5.3)",
    "source tokens at most 200, not about 25,000; target tokens at most 200, not about 25,000, as in the paper (5.1)",
    "updates 200, the paper 100,000 (5.2)",
    "checkpoint every 50, the paper 1500 (6.1)",
]


def test_training_logs_its_differences_once(trained: Run) -> None:
    assert re.findall(r"audit: (.*)", trained.log) == STARTED
    assert trained.log.index("audit: ") < trained.log.index("| train_inner |")


def audited(subject: Path, capsys: pytest.CaptureFixture[str]) -> "dict[str, tuple[object, object, str]]":
    assert cli.main(["audit", "--json", str(subject)]) == 0
    details = json.loads(capsys.readouterr().out)["details"]
    return {detail["name"]: (detail["value"], detail["same"], detail["note"]) for detail in details}


def test_a_run_and_its_mean(corpus: Corpus, trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tokens are counted from the text: an epoch of 120 pairs, of as many source as target tokens, in 5 updates."""
    words = sum(len(line.split()) + 1 for line in (corpus.raw / "train.de").read_text().rstrip().split("\n"))
    found = audited(trained.directory, capsys)
    for side in ("source", "target"):
        value, same, note = found[f"{side} tokens"]
        assert value == pytest.approx(words / 5, abs=1)
        assert (same, note) == (False, "logged mean of an update")
    assert found["updates"] == (200, False, "")
    assert found["checkpoints averaged"] == ("not yet", None, "")
    paths = [trained.directory / f"checkpoint_{epoch}_{update}.pt" for epoch, update in ((20, 100), (30, 150))]
    average_checkpoints(paths, tmp_path / "averaged.pt")
    assert audited(tmp_path, capsys)["checkpoints averaged"] == (2, False, "")


def test_a_stock_model_trained_by_this_task(corpus: Corpus, tmp_path: Path) -> None:
    sizes = ("--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16, "--decoder-embed-dim", 16)
    command = ("fairseq-train", corpus.binary, "--user-dir", Path(cli.__file__).parent, "--task", "vaswani_translation")
    output = run(
        *(*command, "--arch", "transformer", *sizes, "--optimizer", "adam", "--lr", 1e-3, "--max-tokens", 200, "--cpu"),
        *("--max-update", 2, "--no-save", "--disable-validation", "--save-dir", tmp_path, "--num-workers", 0),
    ).output
    lines = re.findall(r"audit: (.*)", output)
    assert lines[0].startswith(
        "N 1, not 6; d_model 16, not 512; d_k 2, not 64; d_v 2, not 64; embeddings three, not one "
    )
    assert "label smoothing 0 (--criterion cross_entropy), the paper 0.1 (5.4)" in lines
    assert "betas 0.9, 0.999, the paper 0.9, 0.98 (5.3)" in lines
    assert "learning rate fixed, the paper inverse square root (5.3)" in lines
    assert "checkpoint every none, the paper 1500 (6.1)" in lines
