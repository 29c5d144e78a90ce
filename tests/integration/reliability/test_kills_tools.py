"""SIGKILL at any moment of the tools: under the final name is what was there before, or all of what is to be there."""

from pathlib import Path
from random import Random

import pytest
from conftest import Corpus, Run
from killing import Account, Moment, Start, killed_until_done, start

LONG = pytest.param(30, marks=pytest.mark.long)
BEFORE = b"of an earlier run\n"


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


@pytest.mark.parametrize("kills", [5, LONG])
@pytest.mark.parametrize("tool", ["average", "encode", "vocabulary"])
def test_tools(
    trained: Run, text: Path, model: Path, commands_at_once: "dict[str, str]", tmp_path: Path, tool: str, kills: int
) -> None:
    arguments, names = {
        "average": ([trained.directory, "--last", 4, "--output", "mean.pt"], ["mean.pt"]),
        "encode": (["--model", model, text, "--output", "train.sp"], ["train.sp"]),
        "vocabulary": (["--size", 280, "--output", "joint", text], ["joint.model", "joint.dict.txt"]),
    }[tool]
    command = ["vaswani", tool, *arguments]
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    killed.mkdir()
    log = tmp_path / "log"
    undisturbed = start(command, environment=commands_at_once, cwd=alone, log=log)
    assert undisturbed.status == 0, undisturbed.output
    expected = {path.name: path.read_bytes() for path in alone.iterdir()}
    assert sorted(expected) == sorted(names)
    for name in names:
        (killed / name).write_bytes(BEFORE)

    def draw(random: Random) -> Moment:
        if random.random() < 0.5:
            return Moment(random.uniform(0, undisturbed.seconds))
        return Moment(random.uniform(0, 0.002), "*.tmp", killed)

    def check(done: Start) -> str:
        found = {path.name: path.read_bytes() for path in killed.iterdir()}
        whole = {name: name in found and found[name] in (BEFORE, expected[name]) for name in names}
        assert all(whole.values()), whole
        unfinished = sorted(found.keys() - set(names))
        assert len(unfinished) <= len(names), unfinished
        return f"new: {[name for name in names if found[name] != BEFORE]}, unfinished: {unfinished}"

    account = Account(f"{tool}, {kills} kills")
    killed_until_done(command, account, kills, draw, check, environment=commands_at_once, cwd=killed, log=log)
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == expected
