"""What a start finds: a damaged checkpoint_last.pt, a run that is over, the name of a killed process."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_process
import pytest
import torch
from conftest import Corpus, Result, run
from same_state import different_keys

EVERY_TWO = ("--save-interval-updates", 2, "--no-epoch-checkpoints", "--dropout", 0.1)


@pytest.fixture(scope="module")
def six(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of six updates with three checkpoints by updates, each a file of its own."""
    folder = tmp_path_factory.mktemp("six") / "checkpoints"
    corpus.train(folder, *EVERY_TWO, updates=6)
    return shutil.copytree(folder, folder.with_name("apart"))


@pytest.fixture(scope="module")
def eight(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eight")
    corpus.train(folder, *EVERY_TWO, updates=8)
    return folder


def updates_of(checkpoint: Path) -> int:
    return torch.load(checkpoint, weights_only=True)["optimizer_history"][-1]["num_updates"]


def interval(folder: Path, updates: int) -> Path:
    (path,) = folder.glob(f"checkpoint_[0-9]*_{updates}.pt")
    return path


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "damaged", "chosen", "told"),
    [
        (empty, [], 6, "is empty, so it is not a checkpoint"),
        (cut_off, [], 6, "is not a complete checkpoint"),
        (flip, [6], 4, "is damaged: its member "),
        (empty, [6, 4], 2, "is empty, so it is not a checkpoint"),
    ],
    ids=["empty", "cut off", "two flipped", "three empty"],
)
def test_the_newest_that_is_whole_is_gone_on_from_and_named(
    corpus: Corpus,
    six: Path,
    eight: Path,
    tmp_path: Path,
    damage: "Callable[[Path], None]",
    damaged: "list[int]",
    chosen: int,
    told: str,
) -> None:
    save = shutil.copytree(six, tmp_path / "save")
    # An earlier one, as when no later validation was better.
    shutil.copy(interval(six, 2), save / "checkpoint_best.pt")
    last = save / "checkpoint_last.pt"
    for path in (last, *(interval(save, updates) for updates in damaged)):
        damage(path)
    log = corpus.train(save, *EVERY_TWO, updates=8).output
    (line,) = [line for line in log.split("\n") if "WARNING" in line and "going on from" in line]
    named = interval(save, chosen)
    if chosen == 2:  # two files of the same updates: either is right
        named = save / "checkpoint_best.pt" if str(named) not in line else named
    assert f"{last} {told}" in line
    assert line.endswith(f"; going on from {named}, the newest one beside it that is whole, after {chosen} updates")
    assert f"Loaded checkpoint {named} " in log
    # The best loss of all was of the validation that the copied checkpoint does not have.
    assert [key for key in different_keys(last, eight / "checkpoint_last.pt") if key != ".extra_state.best"] == []


def test_when_none_is_whole(corpus: Corpus, six: Path, tmp_path: Path) -> None:
    save = shutil.copytree(six, tmp_path / "save")
    for path in save.iterdir():
        empty(path)
    done = in_process.train(corpus.binary, save, *EVERY_TWO, "--max-update", 8, status=1)
    assert in_process.refusal(done, "fairseq-train") == (
        f"{save}/checkpoint_last.pt is empty, so it is not a checkpoint, and there is no other checkpoint to go on "
        f"from in {save}; restore the file, or remove it to begin from nothing"
    )


def test_a_damaged_one_that_was_asked_for_is_refused(corpus: Corpus, six: Path, tmp_path: Path) -> None:
    save = shutil.copytree(six, tmp_path / "save")
    last = save / "checkpoint_last.pt"
    empty(last)
    for flag in ("--restore-file", "--finetune-from-model"):
        where = save if flag == "--restore-file" else tmp_path / "new"
        done = in_process.train(corpus.binary, where, *EVERY_TWO, flag, last, "--max-update", 8, status=1)
        assert in_process.refusal(done, "fairseq-train").startswith(f"{last} is empty")


# --- a run that is over ----------------------------------------------------------------------------------------------


def test_a_run_that_has_made_its_updates_makes_no_more(corpus: Corpus, six: Path, tmp_path: Path) -> None:
    save = shutil.copytree(six, tmp_path / "save")
    before = {path.name: path.read_bytes() for path in save.iterdir()}
    for updates in (6, 5):
        done = in_process.train(corpus.binary, save, *EVERY_TWO, "--max-update", updates)
        assert f"nothing to do: the run has made its 6 updates (--max-update {updates})" in done.output
        assert "done training in" in done.output
        assert {path.name: path.read_bytes() for path in save.iterdir()} == before


def test_patience_counts_on_over_starts_and_ends_a_run_for_good(corpus: Corpus, tmp_path: Path) -> None:
    """Weights that hardly move: the first validation is the best, and two more end the run, at the end of epoch 3."""
    still = ("--lr-factor", 1e-30, "--dropout", 0, "--patience", 2)

    def start(save: Path, *extra: Any, updates: int = 10**6) -> Result:
        return in_process.train(corpus.binary, save, *still, "--max-update", updates, *extra)

    start(tmp_path / "straight")
    reached = updates_of(tmp_path / "straight" / "checkpoint_last.pt")
    epoch = reached // 3
    assert reached == 3 * epoch > 3
    save = tmp_path / "stopped"
    for updates in (epoch, 2 * epoch):
        start(save, updates=updates)
        assert updates_of(save / "checkpoint_last.pt") == updates
    start(save)
    assert updates_of(save / "checkpoint_last.pt") == reached
    again = start(save)
    assert "nothing to do: the run has ended" in again.output
    assert "the last 2 validations without a better one (--patience 2)" in again.output
    assert updates_of(save / "checkpoint_last.pt") == reached
    # A larger patience goes on, and fine-tuning begins its own count.
    start(save, "--patience", 3)
    assert updates_of(save / "checkpoint_last.pt") == 4 * epoch
    start(tmp_path / "tuned", "--finetune-from-model", save / "checkpoint_last.pt")
    assert updates_of(tmp_path / "tuned" / "checkpoint_last.pt") == reached


# --- what a killed process has left ----------------------------------------------------------------------------------


def test_what_is_left_under_the_same_process_number_is_not_written_into(tmp_path: Path) -> None:
    """In a container every start has the same number; what is left there is another name of a checkpoint."""
    from fairseq.file_io import PathManager

    for number in (1, 2, 3):
        (tmp_path / f"checkpoint_1_{number}.pt").write_bytes(bytes([number]))
    last = tmp_path / "checkpoint_last.pt"
    os.link(tmp_path / "checkpoint_1_1.pt", last)
    os.link(tmp_path / "checkpoint_1_2.pt", f"{last}.{os.getpid()}.tmp")
    PathManager.copy(str(tmp_path / "checkpoint_1_3.pt"), str(last), overwrite=True)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {
        "checkpoint_1_1.pt": b"\1",
        "checkpoint_1_2.pt": b"\2",
        "checkpoint_1_3.pt": b"\3",
        "checkpoint_last.pt": b"\3",
    }


def test_the_next_checkpoint_removes_what_killed_trainings_have_left(corpus: Corpus, tmp_path: Path) -> None:
    """Nothing of others: files of the user, and of another part of a model that several processes write."""
    left = [
        "checkpoint_1_5.pt.tmp",
        "checkpoint_last.pt.12.tmp",
        "checkpoint1.pt.tmp",
        "checkpoint.best_loss_3.4501.pt.tmp",
    ]
    others = [
        "averaged.pt.12.tmp",
        "checkpoint_1_5-model_part-1.pt.tmp",
        "checkpoint_mine.pt.tmp",
        "checkpoint_1_5.pt.bak",
    ]
    for name in (*left, *others):
        (tmp_path / name).write_bytes(b"")
    in_process.train(corpus.binary, tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found & {*left, *others} == set(others)
    assert (tmp_path / "checkpoint_last.pt").is_file()


@pytest.mark.parametrize("command", ["fairseq-train", "vaswani"])
def test_interrupting_the_start_itself_is_no_traceback(tmp_path: Path, command: str) -> None:
    """The seconds in which everything is imported; what a shell calls 130 is a process that SIGINT has ended."""
    package = {"fairseq-train": "fairseq_cli", "vaswani": "vaswani_plugin"}[command]
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt\n")
    program = f"import sys; sys.argv[0] = 'bin/{command}'; import {package}.train"
    status = 130 if command == "vaswani" else -signal.SIGINT
    done = run(sys.executable, "-c", program, status=status, PYTHONPATH=str(tmp_path))
    assert done.output == f"{command}: interrupted\n"
