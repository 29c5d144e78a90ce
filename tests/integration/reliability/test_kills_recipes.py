"""SIGKILL at any moment of a recipe, with all its processes: run again, it ends in the same files."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from conftest import write_pairs
from killing import Account, Moment, Start, start
from same_state import different_keys

from vaswani_plugin.checkpoints.reading import read_checkpoint

RECIPE = Path(__file__).parents[3] / "examples" / "quickstart" / "run.sh"
LONG = pytest.param(30, marks=pytest.mark.long)
SETTINGS = {"DATA": "data", "WORK": "work", "VOCAB_SIZE": "280", "MAX_UPDATE": "4"}
# What a start logs or counts, not what it makes.
_BESIDE = ("logs", "steps", "lock", "train.log", "preprocess.log", "report.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "data").mkdir()
    for seed, (part, count) in enumerate((("train", 100), ("valid", 4), ("test", 4))):
        write_pairs(folder / "data", part, count, seed)
    return folder


def products(work: Path) -> "Iterator[Path]":
    """The files under their final names, by their names in the folder."""
    for path in sorted(work.rglob("*")):
        name = path.relative_to(work)
        unfinished = any(part.endswith(".tmp") for part in name.parts)
        if path.is_file() and not unfinished and not set(name.parts) & set(_BESIDE):
            yield name


def assert_whole(work: Path, expected: Path) -> None:
    """What is there is what an undisturbed run has there in the end; checkpoints on the way can at least be read."""
    for name in products(work):
        if name.suffix != ".pt":
            assert (work / name).read_bytes() == (expected / name).read_bytes(), name
        elif name.name in ("checkpoint_last.pt", "checkpoint_best.pt") or not (expected / name).exists():
            read_checkpoint(work / name)
        else:
            assert different_keys(work / name, expected / name) == [], name
    report = work / "report.html"
    assert not report.exists() or report.read_bytes().rstrip().endswith(b"</html>")


@pytest.mark.parametrize("kills", [3, LONG])
def test_quickstart(folder: Path, commands_at_once: "dict[str, str]", tmp_path: Path, kills: int) -> None:
    work, expected = folder / "work", tmp_path / "expected"
    shutil.rmtree(work, ignore_errors=True)
    options = {"environment": {**commands_at_once, **SETTINGS}, "cwd": folder, "log": tmp_path / "log"}
    undisturbed = start(["bash", RECIPE], **options)
    assert undisturbed.status == 0, undisturbed.output[-4000:]
    work.rename(expected)
    checkpoints = work / "checkpoints"

    def draw(random: Random) -> Moment:
        return random.choice(
            [
                Moment(random.uniform(0, undisturbed.seconds / 3)),
                Moment(random.uniform(0, 0.003), "*", work / "steps", random.randint(1, 3)),
                Moment(random.uniform(0, 0.02), "*", work, random.randint(1, 6)),
                Moment(random.uniform(0, 0.01), "checkpoint_*.tmp", checkpoints, random.randint(1, 2)),
            ]
        )

    account = Account(f"quickstart, {kills} kills")
    while account.kills < kills:
        shutil.rmtree(work, ignore_errors=True)
        status: int | None = None
        while status is None and account.kills < kills:
            moment = draw(account.random)
            done = start(["bash", RECIPE], moment, **options)
            assert done.status in (None, 0), done.output[-4000:]
            status = done.status
            account.note(moment, done, state(work, done))
            if status is None:
                assert_whole(work, expected)
        if status is None:
            done = start(["bash", RECIPE], **options)
            assert done.status == 0, done.output[-4000:]
        assert sorted(products(work)) == sorted(products(expected))
        assert_whole(work, expected)
        for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
            assert different_keys(work / "checkpoints" / name, expected / "checkpoints" / name) == []
        assert list(work.rglob("*.tmp*")) == []


def state(work: Path, done: Start) -> str:
    steps = sorted(os.listdir(work / "steps")) if (work / "steps").exists() else []
    return f"after {done.seconds:.2f} s, steps done: {len(steps)}"


# --- kills between two lines of the training's step ------------------------------------------------------------------


def settle(folder: Path, settings: str, updates: int) -> None:
    """The recipes' own function, before a training of so many updates."""
    program = 'RECIPE=test; source "$0"; CHECKPOINTS=$PWD/c; settle_checkpoints "$@"'
    words = [RECIPE.parents[1] / "recipe.sh", settings, str(updates)]
    subprocess.run(["bash", "-euc", program, *words], cwd=folder, check=True)


def files(folder: Path) -> "dict[str, str]":
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_checkpoints_of_other_settings_are_put_aside_once(tmp_path: Path) -> None:
    settle(tmp_path, "first", 10)
    (tmp_path / "c" / "checkpoint_last.pt").write_text("of the first")
    settle(tmp_path, "first", 20)
    assert files(tmp_path) == {"c/checkpoint_last.pt": "of the first", "c/settings": "first 20\n"}
    # A kill in the middle of the new settings' line.
    (tmp_path / "c.settings.tmp").write_text("fir")
    settle(tmp_path, "first", 20)
    assert files(tmp_path) == {"c/checkpoint_last.pt": "of the first", "c/settings": "first 20\n"}
    settle(tmp_path, "second", 10)
    kept = {"c.before/checkpoint_last.pt": "of the first", "c.before/settings": "first 20\n"}
    assert files(tmp_path) == {**kept, "c/settings": "second 10\n"}
    # A kill before there were settings in the new folder: what was put aside stays.
    (tmp_path / "c" / "settings").unlink()
    settle(tmp_path, "second", 10)
    assert files(tmp_path) == {**kept, "c/settings": "second 10\n"}


@pytest.mark.parametrize(("updates", "goes_on"), [(12, True), (13, True), (11, False)])
def test_a_training_that_was_stopped_can_be_taken_as_it_is(tmp_path: Path, updates: int, goes_on: bool) -> None:
    # With fewer updates than it was begun for, but not fewer than it has made.
    settle(tmp_path, "first", 100)
    told = [f"INFO | checkpoint_utils | Preparing to save checkpoint for epoch 1 @ {n} updates" for n in (9, 12)]
    (tmp_path / "c" / "train.log").write_text("\n".join([*told, "INFO | train | done @ 99 updates", ""]))
    (tmp_path / "c" / "checkpoint_last.pt").write_text("of update 12")
    settle(tmp_path, "first", updates)
    assert (tmp_path / "c" / "checkpoint_last.pt").exists() is goes_on
    assert (tmp_path / "c.before" / "checkpoint_last.pt").exists() is not goes_on
    assert (tmp_path / "c" / "settings").read_text() == f"first {updates}\n"


def test_without_a_log_fewer_updates_begin_anew(tmp_path: Path) -> None:
    settle(tmp_path, "first", 100)
    (tmp_path / "c" / "checkpoint_last.pt").write_text("of some update")
    settle(tmp_path, "first", 50)
    assert files(tmp_path / "c.before") == {"checkpoint_last.pt": "of some update", "settings": "first 100\n"}
