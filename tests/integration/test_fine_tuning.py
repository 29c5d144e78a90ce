"""What each way of going on from a checkpoint does, measured through fairseq-train and held to the page's table."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import reference
import torch
from conftest import PLUGIN, Corpus

from vaswani_plugin.checkpoints.reading import read_checkpoint

PAGE = (Path(__file__).parents[2] / "docs" / "fine_tuning_and_resuming.md").read_text("utf-8")
SIZES = ["--num-layers", 1, "--d-model", 16, "--d-ff", 32, "--num-heads", 2]
PARTS = ["--task", "vaswani_translation", "--arch", "vaswani_tiny", *SIZES, "--criterion", "vaswani_label_smoothing"]
SCHEDULE = ["--lr-scheduler", "vaswani_inverse_sqrt", "--warmup-updates", 10]
ADAM = ["--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--adam-eps", 1e-9]
BEST = 0.5
"""What the stopped run is made to remember as its best score, which no run of these reaches."""


@dataclass
class Stopped:
    """A run of 8 updates, stopped after the third of five batches of its second epoch."""

    corpus: Corpus
    directory: Path
    environment: "dict[str, str]"

    def train(self, *arguments: Any, optimiser: "Sequence[Any]" = ADAM, status: int = 0) -> str:
        small = ["--max-tokens", 200, "--cpu", "--num-workers", 0, "--no-epoch-checkpoints"]
        log = ["--log-format", "simple", "--log-interval", 1]
        command = [
            "fairseq-train",
            self.corpus.binary,
            "--user-dir",
            PLUGIN,
            *PARTS,
            *SCHEDULE,
            *optimiser,
            *small,
            *log,
        ]
        done = subprocess.run(
            [str(word) for word in [*command, *log, *arguments]],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout[-4000:]
        return done.stdout

    def go_on(self, save_dir: Path, flags: "list[str]", updates: int) -> "dict[str, Any]":
        """Go on from the checkpoint up to a number of updates.

        Returns:
            Number of the first new update, the rate logged after it, which is the next one's, where in the data it
            was, and whether the best score of before counted.
        """
        words = [str(self.directory / "checkpoint_last.pt") if word == "FILE" else word for word in flags]
        if "FILE" not in flags:
            shutil.copytree(self.directory, save_dir)
        log = self.train("--save-dir", save_dir, "--max-update", updates, *words)
        line = next(line for line in log.split("\n") if "train_inner" in line)
        epoch, batch, update, rate = re.search(
            r"epoch 0*(\d+): +(\d+) / \d+ .*\bnum_updates=(\d+), lr=([\d.e-]+)", line
        ).groups()
        best = torch.load(save_dir / "checkpoint_last.pt", weights_only=True)["extra_state"]["best"]
        return {
            "update": int(update),
            "next rate": float(rate),
            "next batch": f"epoch {epoch}, batch {batch}",
            "best score": "kept" if best == BEST else "forgotten",
        }


@pytest.fixture(scope="module")
def stopped(corpus: Corpus, commands_at_once: "dict[str, str]", tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    run = Stopped(corpus, tmp_path_factory.mktemp("stopped") / "run", commands_at_once)
    run.train("--save-dir", run.directory, "--max-update", 8)
    state = torch.load(run.directory / "checkpoint_last.pt", weights_only=True)
    state["extra_state"]["best"] = BEST
    torch.save(state, run.directory / "checkpoint_last.pt")
    return run


def rows() -> "list[list[str]]":
    """The cells of the page's table, its head left out."""
    table = re.search(r"^\| added to the command \|.*\n\|[ -|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE).group(1)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().split("\n")]


def written_rate(text: str, ahead: int) -> float:
    """ "2 rate(9) with 20": the factor, the update's number, the warm-up; of the update so many ahead."""
    factor, update, warmup = re.fullmatch(r"(?:(\d+) )?rate\((\d+)\)(?: with (\d+))?", text).groups()
    return int(factor or 1) * reference.learning_rate(int(update) + ahead, 16, int(warmup or 10))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_row_of_the_table(stopped: Stopped, tmp_path: Path, row: "list[str]") -> None:
    flags, update, rate, batch, best = row
    words = [] if flags == "nothing" else shlex.split(flags.strip("`"))
    found = stopped.go_on(tmp_path / "run", words, int(update) + 1)
    assert found["next rate"] == pytest.approx(written_rate(rate, 1), rel=1e-4)
    assert (found["update"], found["next batch"], found["best score"]) == (int(update), batch, best)


def test_the_table_has_every_reset_flag() -> None:
    flags = " ".join(row[0] for row in rows())
    for name in ("optimizer", "lr-scheduler", "meters", "dataloader"):
        assert f"--reset-{name}" in flags


def test_the_update_after_the_restart_has_the_rate_of_its_number(stopped: Stopped, tmp_path: Path) -> None:
    """Not only the logged rates: Adam's first step is the rate times a function of the gradient alone."""
    start, moved = stopped.directory / "checkpoint_last.pt", []
    before = torch.load(start, weights_only=True)["model"]["encoder.embedding.weight"]
    for factor in (1, 3):
        once = ["--finetune-from-model", start, "--dropout", 0, "--lr-factor", factor, "--max-update", 1]
        stopped.train(*once, "--save-dir", tmp_path / str(factor))
        after = torch.load(tmp_path / str(factor) / "checkpoint_last.pt", weights_only=True)["model"]
        moved.append(after["encoder.embedding.weight"] - before)
    assert moved[0].abs().max() == pytest.approx(reference.learning_rate(1, 16, 10), rel=1e-3)
    torch.testing.assert_close(moved[1], 3 * moved[0], rtol=1e-3, atol=1e-6)


def test_an_interrupted_fine_tuning_is_resumed_by_its_own_command(stopped: Stopped, tmp_path: Path) -> None:
    fine_tuning = ["--finetune-from-model", stopped.directory / "checkpoint_last.pt", "--save-dir", tmp_path]
    stopped.train(*fine_tuning, "--max-update", 2)
    log = stopped.train(*fine_tuning, "--max-update", 4)
    assert re.findall(r"num_updates=(\d+), lr", log) == ["3", "4"]


@pytest.mark.parametrize(
    ("flags", "both_sides"),
    [
        (["--d-model", 24], "the checkpoint has --d-model 16, this run --d-model 24"),
        (["--num-heads", 4], "the checkpoint has --num-heads 2, this run --num-heads 4"),
        (["--num-layers", 2, "--d-ff", 8], "has --num-layers 1, --d-ff 32, this run --num-layers 2, --d-ff 8"),
        (["--attention-bias"], "has --attention-bias False, this run --attention-bias True"),
    ],
)
@pytest.mark.parametrize("way", ["resumed", "fine-tuned"])
def test_another_architecture(stopped: Stopped, tmp_path: Path, flags: "list[Any]", both_sides: str, way: str) -> None:
    file = stopped.directory / "checkpoint_last.pt"
    start = ["--restore-file" if way == "resumed" else "--finetune-from-model", file, "--save-dir", tmp_path]
    log = stopped.train(*start, *flags, "--max-update", 9, status=1)
    last = log.strip().split("\n")[-1]
    assert both_sides in last
    assert str(file) in last
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--criterion", "cross_entropy"],
            "was trained with the criterion VaswaniLabelSmoothingCriterion, but this run has CrossEntropyCriterion: "
            "give the former one as --criterion, or add --reset-optimizer",
        ),
        (
            ["--optimizer", "nag"],
            "was trained with the optimizer FairseqAdam, but this run has FairseqNAG: give the former one as "
            "--optimizer, or add --reset-optimizer",
        ),
        (
            ["--max-tokens", 1000],
            "the checkpoint stands after batch 3 of epoch 2, which now has no further ones: give the former "
            "--max-tokens and --batch-size, or add --reset-dataloader",
        ),
    ],
)
def test_another_part_or_batch(stopped: Stopped, tmp_path: Path, flags: "list[Any]", sentence: str) -> None:
    optimiser = [*ADAM[:2]] if "--optimizer" not in flags else flags
    shutil.copytree(stopped.directory, tmp_path / "run")
    words = [] if optimiser is flags else flags
    log = stopped.train("--save-dir", tmp_path / "run", *words, "--max-update", 9, optimiser=optimiser, status=1)
    assert sentence in log.strip().split("\n")[-1]
    assert "Traceback" not in log


def test_another_update_frequency_within_an_epoch_takes_all_that_is_left(stopped: Stopped, tmp_path: Path) -> None:
    """Three of five batches of 24 pairs are done: the other two make one update, and the next epoch begins."""
    shutil.copytree(stopped.directory, tmp_path / "run")
    log = stopped.train("--save-dir", tmp_path / "run", "--update-freq", 2, "--max-update", 10)
    updates = re.findall(r"train_inner \| epoch 0*(\d+): +(\d+) / (\d+) .* num_updates=(\d+), lr", log)
    assert updates == [("2", "3", "3", "9"), ("3", "1", "3", "10")]


def test_another_dictionary_of_the_same_size(stopped: Stopped, tmp_path: Path) -> None:
    """Two words exchanged: what would otherwise train on with wrong embeddings, or translate into nonsense."""
    other = tmp_path / "binary"
    shutil.copytree(stopped.corpus.binary, other)
    for language in ("en", "de"):
        lines = (other / f"dict.{language}.txt").read_text().split("\n")
        lines[0], lines[1] = lines[1], lines[0]
        (other / f"dict.{language}.txt").write_text("\n".join(lines))
    file = stopped.directory / "checkpoint_last.pt"
    size = len(lines) - 1 + 4
    sentence = (
        f"has dictionaries of {size} and {size} entries, this run dictionaries of {size} and {size} other entries"
    )
    log = replace(stopped, corpus=Corpus(other, other)).train(
        "--finetune-from-model", file, "--save-dir", tmp_path / "run", "--max-update", 9, status=1
    )
    assert sentence in log.strip().split("\n")[-1]
    assert "Traceback" not in log


def test_sources_and_targets_of_an_update_are_logged(stopped: Stopped, tmp_path: Path) -> None:
    """120 pairs as updates of two batches of 40 and of one; the target's sentences are three words longer."""
    lines = (stopped.corpus.raw / "train.en").read_text().strip().split("\n")
    (tmp_path / "longer.en").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "longer.de").write_text("".join(f"{line} w0 w1 w2\n" for line in lines))
    text = ["--trainpref", tmp_path / "longer", "--validpref", tmp_path / "longer", "--destdir", tmp_path / "binary"]
    joined = ["-s", "en", "-t", "de", "--srcdict", stopped.corpus.binary / "dict.en.txt", "--joined-dictionary"]
    command = [str(word) for word in ["fairseq-preprocess", *joined, *text]]
    subprocess.run(command, env=stopped.environment, check=True, capture_output=True)
    log = replace(stopped, corpus=Corpus(tmp_path, tmp_path / "binary")).train(
        *("--batch-size", 40, "--max-tokens", 100000, "--update-freq", 2),
        *("--save-dir", tmp_path / "run", "--max-epoch", 1, "--no-save"),
    )
    source = sum(len(line.split()) + 1 for line in lines)
    updates = re.findall(r"train_inner .* wpb=([\d.]+), src_wpb=([\d.]+), bsz=(\d+),", log)
    target_tokens, source_tokens, sentences = ([float(value) for value in values] for values in zip(*updates))
    assert sentences == [80, 40]
    assert sum(source_tokens) == source
    assert sum(target_tokens) == source + 3 * 120
    assert [t - s for t, s in zip(target_tokens, source_tokens)] == [3 * 80, 3 * 40]
    # The epoch's line has the mean of its updates, as for wpb.
    assert f"| wpb {source / 2 + 180:g} | src_wpb {source / 2:g} | bsz 60 |" in log


@pytest.mark.parametrize("flags", [[], ["--sentence-avg"], ["--ignore-prefix-size", "2"]])
def test_accumulation_is_one_large_batch(stopped: Stopped, tmp_path: Path, flags: "list[str]") -> None:
    """The whole text in one batch of 120 or in three of 40: the same two updates and the same validation."""
    weights, scores = [], []
    for size, freq in ((120, 1), (40, 3)):
        one = ["--batch-size", size, "--update-freq", freq, "--max-tokens", 100000, "--dropout", 0]
        where = ["--save-dir", tmp_path / str(size), "--max-update", 2]
        log = stopped.train(*one, *flags, *where, optimiser=["--optimizer", "sgd"])
        weights.append(read_checkpoint(tmp_path / str(size) / "checkpoint_last.pt")["model"])
        scores.append(re.findall(r"\| valid \|.* loss ([\d.]+) .* ppl ([\d.]+)", log)[-1])
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-4, atol=2e-6)
    assert scores[0] == scores[1]
