"""SIGKILL at any moment of the tools: under the final name is what was there before, or all of what is to be there."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import Corpus, Run
from killing import Account, Moment, Start, killed_until_done, start

LONG = pytest.param(30, marks=pytest.mark.long)
BEFORE = b"of an earlier run\n"
# What one start writes at the same time: preprocess with two workers, and the dictionary of a start before.
MOST_UNFINISHED = 5


@pytest.fixture(scope="module")
def text(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "train.en"
    path.write_text((corpus.raw / "train.en").read_text() * 100)
    return path


@pytest.fixture(scope="module")
def model(text: Path, commands_at_once: "dict[str, str]") -> Path:
    prefix = text.with_name("joint")
    command = ["vaswani", "vocabulary", "--size", 280, "--output", prefix, text]
    assert start(command, environment=commands_at_once, log=text.with_name("log")).status == 0
    return text.with_name("joint.model")


def products(folder: Path) -> "dict[str, bytes]":
    """All files but the log of a tool, by their names."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if path.suffix != ".log"}


@pytest.mark.parametrize("kills", [5, LONG])
@pytest.mark.parametrize("tool", ["average", "encode", "vocabulary", "preprocess"])
def test_tools(
    corpus: Corpus,
    trained: Run,
    text: Path,
    model: Path,
    commands_at_once: "dict[str, str]",
    tmp_path: Path,
    tool: str,
    kills: int,
) -> None:
    command: list[Any] = {
        "average": ["vaswani", "average", trained.directory, "--last", 4, "--output", "out/mean.pt"],
        "encode": ["vaswani", "encode", "--model", model, text, "--output", "out/train.sp"],
        "vocabulary": ["vaswani", "vocabulary", "--size", 280, "--output", "out/joint", text],
        "preprocess": ["fairseq-preprocess", "--only-source", "-s", "en", "--trainpref", text.with_suffix("")],
    }[tool]
    if tool == "preprocess":
        command += ["--srcdict", corpus.binary / "dict.en.txt", "--destdir", "out", "--workers", 2]
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    log = tmp_path / "log"
    undisturbed = start(command, environment=commands_at_once, cwd=alone, log=log)
    assert undisturbed.status == 0, undisturbed.output
    expected = products(alone)
    for name in expected:
        (killed / name).parent.mkdir(parents=True, exist_ok=True)
        (killed / name).write_bytes(BEFORE)

    def draw(random: Random) -> Moment:
        if random.random() < 0.5:
            return Moment(random.uniform(0, undisturbed.seconds))
        return Moment(random.uniform(0, 0.01), "*.tmp*", killed / "out")

    def check(done: Start) -> str:
        found = products(killed)
        whole = {name: found.get(name) in (BEFORE, content) for name, content in expected.items()}
        assert all(whole.values()), whole
        unfinished = sorted(found.keys() - expected.keys())
        assert len(unfinished) <= MOST_UNFINISHED, unfinished
        return f"new: {[name for name in expected if found[name] != BEFORE]}, unfinished: {len(unfinished)}"

    account = Account(f"{tool}, {kills} kills")
    killed_until_done(command, account, kills, draw, check, environment=commands_at_once, cwd=killed, log=log)
    assert products(killed) == expected
