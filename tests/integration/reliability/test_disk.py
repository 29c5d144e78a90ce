"""What a training and the tools take of the disk, and what they do when it is full."""

import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import in_process
import pytest
from conftest import PAPER_OPTIMISER, PLUGIN, Corpus, Run
from same_state import different_keys

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint

KEPT = 2
EPOCH = 5  # updates
INTERVAL = re.compile(r"checkpoint_\d+_\d+\.pt")
EPOCHS = re.compile(r"checkpoint\d+\.pt")


@contextmanager
def files_of_at_most(size: int) -> "Iterator[None]":
    """Writing more into a file fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def training(corpus: Corpus, save: Path, updates: int) -> "list[Any]":
    return [
        *("fairseq-train", corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation", *PAPER_OPTIMISER),
        *("--arch", "vaswani_tiny", "--num-layers", 2, "--d-model", 16, "--d-ff", 32, "--num-heads", 2),
        *("--max-tokens", 200, "--cpu", "--num-workers", 0, "--max-update", updates, "--save-dir", save),
    ]


@pytest.mark.parametrize("every", [EPOCH, 2])
def test_no_more_checkpoints_than_asked_for_at_any_time(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Each time that a file takes its name. An interval that ends with an epoch counts for the averaging too."""
    save = tmp_path / "checkpoints"
    seen: list[tuple[int, int, int]] = []
    replace = os.replace

    def observed(source: str, target: str) -> None:
        replace(source, target)
        files = [path for path in save.iterdir() if path.suffix in (".pt", ".tmp")]
        intervals = sum(INTERVAL.fullmatch(path.name) is not None for path in files)
        epochs = sum(EPOCHS.fullmatch(path.name) is not None for path in files)
        seen.append((intervals, epochs, len({path.stat().st_ino for path in files})))

    monkeypatch.setattr(os, "replace", observed)
    in_process.call(
        *training(corpus, save, updates=4 * EPOCH),
        *("--save-interval-updates", every, "--keep-interval-updates", KEPT, "--keep-last-epochs", KEPT),
    )
    monkeypatch.undo()

    # One more while the new one is written, before the oldest goes.
    most_intervals, most_epochs, _ = (max(column) for column in zip(*seen, strict=True))
    assert (most_intervals, most_epochs) == (KEPT + 1, KEPT + 1)
    # Names share one file's bytes; the best one may be older than all others.
    assert max(distinct for *_, distinct in seen) <= (KEPT + 1) * (1 if every == EPOCH else 2) + 1
    names = {path.name for path in save.iterdir()}
    assert {name for name in names if INTERVAL.fullmatch(name)} == {
        f"checkpoint_{-(-updates // EPOCH)}_{updates}.pt" for updates in (4 * EPOCH - every, 4 * EPOCH)
    }
    assert {name for name in names if EPOCHS.fullmatch(name)} == {"checkpoint3.pt", "checkpoint4.pt"}
    assert cli.main(["average", str(save), "--last", str(KEPT), "--output", str(tmp_path / "mean.pt")]) == 0
    averaged = read_checkpoint(tmp_path / "mean.pt")["extra_state"]["averaged"]
    assert [source["num_updates"] for source in averaged] == [4 * EPOCH - every, 4 * EPOCH]


def test_a_disk_that_fills_up_in_a_training(corpus: Corpus, tmp_path: Path) -> None:
    flags = ("--save-interval-updates", EPOCH, "--no-epoch-checkpoints", "--dropout", 0.1)
    save, straight = tmp_path / "save", tmp_path / "straight"
    corpus.train(straight, *flags, updates=2 * EPOCH)
    corpus.train(save, *flags, updates=EPOCH)
    before = {path.name: path.read_bytes() for path in save.iterdir()}
    with files_of_at_most(len(before["checkpoint_last.pt"]) // 2):
        done = in_process.train(corpus.binary, save, *flags, "--max-update", 2 * EPOCH, status=1)
    assert in_process.refusal(done, "fairseq-train") == (
        f"the checkpoint {save}/checkpoint_2_{2 * EPOCH}.pt could not be written: File too large; those before it are "
        "whole, and the same command goes on from the last of them"
    )
    assert {path.name: path.read_bytes() for path in save.iterdir()} == before
    corpus.train(save, *flags, updates=2 * EPOCH)
    assert different_keys(save / "checkpoint_last.pt", straight / "checkpoint_last.pt") == []


def test_a_disk_without_hard_links_that_fills_up(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint itself fits, its copy does not."""
    copied: list[str] = []
    monkeypatch.delattr("fairseq.checkpoint_utils.save_checkpoint.best", raising=False)  # of earlier calls

    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted", source)

    def fill(source: str, target: str) -> None:
        copied.append(target)
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device", source)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("shutil.copyfile", fill)
    done = in_process.train(corpus.binary, tmp_path, "--save-interval-updates", 1, status=1)
    first, second = tmp_path / "checkpoint_1_1.pt", tmp_path / "checkpoint_best.pt"
    assert in_process.refusal(done, "fairseq-train") == (
        f"{first} was written, but not {second}: No space left on device"
    )
    assert len(copied) == 1
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    assert num_updates(read_checkpoint(first)) == 1


@pytest.mark.parametrize("tool", ["average", "encode", "vocabulary"])
def test_tools_on_a_full_disk(
    trained: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    text = corpus.raw / "train.en"
    model = tmp_path / "joint"
    assert cli.main(["vocabulary", "--size", "280", "--output", str(model), str(text)]) == 0
    folder = tmp_path / "full"
    folder.mkdir()
    name, arguments = {
        "average": ("mean.pt", [str(trained.directory), "--last", "2", "--output", str(folder / "mean.pt")]),
        "encode": ("train.sp", ["--model", f"{model}.model", str(text), "--output", str(folder / "train.sp")]),
        "vocabulary": ("joint.model", ["--size", "280", "--output", str(folder / "joint"), str(text)]),
    }[tool]
    (folder / name).write_bytes(b"before")
    capsys.readouterr()
    with files_of_at_most(1000):
        assert cli.main([tool, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"vaswani {tool}: {folder}/")
    assert error.endswith(" could not be written (File too large): make room on the disk, or give another --output\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {name: b"before"}
