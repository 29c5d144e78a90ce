"""SIGKILL at any moment of a training: the next start goes on, and the end is that of a run that was left alone."""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import PAPER_OPTIMISER, PLUGIN, Corpus
from killing import Account, Moment, Start, killed_until_done, start
from same_state import different_keys

from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint

SAVE_EVERY, KEPT = 2, 3
# A kill comes after at most so many of them.
MOST_SAVES = 3
LONG = pytest.param(30, marks=pytest.mark.long)


def training(corpus: Corpus, save: Path, updates: int, *extra: Any) -> "list[Any]":
    """A validation and three checkpoints every second update; the model's take long enough to be met half written."""
    return [
        *("fairseq-train", corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation"),
        *("--arch", "vaswani_tiny", "--num-layers", 2, "--d-model", 64, "--d-ff", 256, "--num-heads", 2),
        *(*PAPER_OPTIMISER, "--dropout", 0.1, "--max-tokens", 200, "--cpu", "--num-workers", 0),
        *("--save-interval-updates", SAVE_EVERY, "--keep-interval-updates", KEPT, "--keep-last-epochs", 2),
        *("--patience", 1000, "--max-update", updates, "--log-format", "simple", "--log-interval", 1),
        *("--save-dir", save, *extra),
    ]


@pytest.fixture(scope="module")
def straight(
    corpus: Corpus, commands_at_once: "dict[str, str]", tmp_path_factory: pytest.TempPathFactory
) -> "Callable[[int], Path]":
    """The folder of a run of so many updates that was left alone."""
    runs: dict[int, Path] = {}

    def folder(updates: int) -> Path:
        if updates not in runs:
            save = tmp_path_factory.mktemp("straight") / "checkpoints"
            done = start(training(corpus, save, updates), environment=commands_at_once, log=save.with_name("log"))
            assert done.status == 0, done.output[-4000:]
            runs[updates] = save
        return runs[updates]

    return folder


def all_readable(save: Path) -> str:
    """Every checkpoint under its final name is whole, and of the update that the name says; no more than were asked."""
    reached = {path.name: num_updates(read_checkpoint(path)) for path in sorted(save.glob("*.pt"))}
    named = [re.fullmatch(r"checkpoint_\d+_(\d+)\.pt", name) for name in reached]
    for match in filter(None, named):
        assert reached[match[0]] == int(match[1])
    # The one more is written before the oldest one goes.
    assert sum(match is not None for match in named) <= KEPT + 1
    assert sum(re.fullmatch(r"checkpoint\d+\.pt", name) is not None for name in reached) <= 2 + 1
    unfinished = sorted(path.name for path in save.glob("*") if path.suffix != ".pt")
    assert len(unfinished) <= 2, unfinished
    return f"last {reached.get('checkpoint_last.pt')}, {len(reached)} checkpoints, unfinished: {unfinished}"


def assert_same(save: Path, expected: Path) -> None:
    """The same files with the same in them."""
    names = sorted(path.name for path in save.iterdir())
    assert names == sorted(path.name for path in expected.iterdir())
    assert {"checkpoint_last.pt", "checkpoint_best.pt"} < set(names)
    different = {name: different_keys(save / name, expected / name) for name in names}
    assert different == {name: [] for name in names}


@pytest.mark.parametrize("kills", [5, LONG])
def test_training(
    corpus: Corpus,
    straight: "Callable[[int], Path]",
    commands_at_once: "dict[str, str]",
    tmp_path: Path,
    kills: int,
) -> None:
    updates = 10 + 4 * kills  # about half as many are made between the kills
    expected = straight(updates)
    save = tmp_path / "checkpoints"

    def draw(random: Random) -> Moment:
        kind = random.choice(["any", "start", "writing", "writing", "written"])
        if kind == "start":
            return Moment(random.uniform(0, 1))
        times = random.randint(1, MOST_SAVES)
        if kind == "any":
            return Moment(random.uniform(0, 0.1), "checkpoint_*_*.pt", save, times)
        if kind == "writing":
            return Moment(random.uniform(0, 0.02), "*.tmp", save, times)
        return Moment(random.uniform(0, 0.003), "checkpoint_*_*.pt", save, times)

    def check(done: Start) -> str:
        assert "Traceback" not in done.output
        return all_readable(save)

    account = Account(f"training, {kills} kills")
    killed_until_done(
        training(corpus, save, updates),
        account,
        kills,
        draw,
        check,
        environment=commands_at_once,
        log=tmp_path / "log",
    )
    assert_same(save, expected)


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(
    corpus: Corpus, straight: "Callable[[int], Path]", commands_at_once: "dict[str, str]", tmp_path: Path
) -> None:
    """In the middle of an update, and in the middle of a checkpoint."""
    updates = 30
    save = tmp_path / "checkpoints"
    command = training(corpus, save, updates)
    options: dict[str, Any] = {"environment": commands_at_once, "log": tmp_path / "log"}
    for moment in (Moment(0.01, "checkpoint_*_*.pt", save, 2), Moment(0.001, "*.tmp", save, 2)):
        done = start(command, moment, signal.SIGINT, **options)
        assert done.status == 130
        assert done.output.endswith("\nfairseq-train: interrupted\n")
        assert "Traceback" not in done.output
        all_readable(save)
        assert list(save.glob("*.tmp")) == []
    assert start(command, **options).status == 0
    assert_same(save, straight(updates))
