"""The installed commands, and a small binarised corpus to train on."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forked_commands import forked_commands

PLUGIN = Path(__file__).parents[2] / "vaswani_plugin"
# What the forked commands need, while they can be run.
_at_once: dict[str, str] = {}


@pytest.fixture(scope="session", autouse=True)
def commands_at_once(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[dict[str, str]]":
    """The environment of a user whose commands start at once; ``VENV`` has it for the recipes."""
    venv = tmp_path_factory.mktemp("venv")
    (venv / "bin").mkdir()
    with forked_commands(venv / "bin") as environment:
        _at_once.update(environment)
        yield {**environment, "VENV": str(venv)}
        _at_once.clear()


def script_at_once(command: str) -> str:
    """The file behind a command that starts at once, for a launcher that starts scripts."""
    found = shutil.which(command, path=_at_once["PATH"])
    assert found is not None
    return found


@dataclass
class Result:
    status: int
    output: str

    @property
    def last_line(self) -> str:
        return self.output.strip().split("\n")[-1]


def run(
    *command: Any,
    status: int = 0,
    stdin: str = "",
    cwd: "Path | None" = None,
    installed: bool = False,
    **environment: str,
) -> Result:
    """Run a command of this environment; anything but the expected exit status fails the test with its output.

    ``installed`` takes the scripts as pip installed them, where the start itself is looked at; it costs seconds.
    """
    paths = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env={**os.environ, **(paths if installed else _at_once), **environment},
        timeout=300,
        check=False,
    )
    assert done.returncode == status, f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}"
    return Result(done.returncode, done.stdout)


@dataclass
class Corpus:
    """Raw text and binarised data of sentences whose translation is their reversal."""

    raw: Path
    binary: Path

    def train(self, save_dir: Path, *extra: Any, updates: int = 12, **options: Any) -> Result:
        """fairseq-train with the plugin's parts and the paper's optimiser on a very small model."""
        sizes = ["--num-layers", 2, "--d-model", 16, "--d-ff", 32, "--num-heads", 2]
        return run(
            *("fairseq-train", self.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation"),
            *("--arch", "vaswani_tiny", *sizes, *PAPER_OPTIMISER),
            *("--max-tokens", 200, "--cpu", "--num-workers", 0, "--max-update", updates, "--log-format", "simple"),
            *("--log-interval", 1, "--save-dir", save_dir, *extra),
            **options,
        )

    def generate(self, path: Any, *extra: Any, **options: Any) -> Result:
        command = ("fairseq-generate", self.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu")
        return run(*command, "--path", path, "--no-progress-bar", *extra, **options)


PAPER_OPTIMISER = (
    *("--criterion", "vaswani_label_smoothing", "--lr-scheduler", "vaswani_inverse_sqrt", "--warmup-updates", "100"),
    *("--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--adam-eps", "1e-9"),
)


def write_pairs(folder: Path, name: str, count: int, seed: int) -> None:
    choose = random.Random(seed)
    sentences = [[f"w{choose.randrange(20)}" for _ in range(choose.randint(2, 9))] for _ in range(count)]
    (folder / f"{name}.en").write_text("".join(" ".join(words) + "\n" for words in sentences))
    (folder / f"{name}.de").write_text("".join(" ".join(reversed(words)) + "\n" for words in sentences))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    raw = tmp_path_factory.mktemp("raw")
    for seed, (name, count) in enumerate((("train", 120), ("valid", 15), ("test", 15))):
        write_pairs(raw, name, count, seed)
    binary = tmp_path_factory.mktemp("data") / "binary"
    run(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", binary),
        *("--trainpref", raw / "train", "--validpref", raw / "valid", "--testpref", raw / "test"),
    )
    return Corpus(raw, binary)


@dataclass
class Run:
    directory: Path
    log: str

    @property
    def last(self) -> Path:
        return self.directory / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def trained(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 200 updates with a checkpoint every 50."""
    directory = tmp_path_factory.mktemp("trained")
    flags = ("--save-interval-updates", 50, "--no-epoch-checkpoints", "--dropout", 0.1)
    return Run(directory, corpus.train(directory, *flags, updates=200).output)
