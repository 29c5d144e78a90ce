"""One small change to the plugin, and whether the tests notice it in a copy of the project."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_COPIED = ("vaswani_plugin", "scripts", "tests", "pyproject.toml")
# A comparison that failed, or an error that was not raised. Anything else is a mutation that breaks the program.
_NOTICED = {"AssertionError", "Failed"}


@dataclass(frozen=True)
class Mutation:
    """
    Attributes:
        name: the fault in a few words.
        file: inside vaswani_plugin/.
        old: text of the file, there exactly ``count`` times.
        new: what stands in its place.
        target: pytest's name, inside tests/, of the test or file that is to fail.
    """

    name: str
    file: str
    old: str
    new: str
    target: str
    count: int = 1

    def apply(self, text: str) -> str:
        """The file's text with the fault.

        Raises:
            ValueError: the file has changed, so that the catalogue must follow.
        """
        found = text.count(self.old)
        if found != self.count:
            raise ValueError(
                f"{self.name}: vaswani_plugin/{self.file} has {self.old!r} {found} times, not {self.count}"
            )
        return text.replace(self.old, self.new)


@dataclass
class Outcome:
    """
    Attributes:
        status: pytest's exit status.
        failed: the failed tests with the kinds of their exceptions.
        imported: files of the plugin that the tests had imported.
        output: what pytest printed.
    """

    status: int
    failed: dict[str, str]
    imported: list[str]
    output: str


def copy_project(destination: Path) -> None:
    """What the tests need. Without compiled files, which Python could take for those of a changed source."""
    for name in _COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, destination / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, destination / name)


class TestRuns:
    """A process that runs the tests of copies; see forked_runs.py."""

    __test__ = False

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forked_runs.py")],
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._process.communicate()

    def run(self, copy: Path, targets: Sequence[str]) -> Outcome:
        """Run tests of a copy against the copy's own package, up to the first failure."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"copy": str(copy), "targets": list(targets)}), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "\n", "the process that runs the tests has ended"
        output = (copy / "output.txt").read_text("utf-8", errors="replace")[-4000:]
        record = copy / "outcome.json"
        assert record.exists(), f"pytest did not come to its end:\n{output}"
        outcome = Outcome(**json.loads(record.read_text("utf-8")), output=output)
        package = copy.resolve() / "vaswani_plugin"
        foreign = [file for file in outcome.imported if not Path(file).is_relative_to(package)]
        assert outcome.imported, f"the tests imported nothing of the plugin:\n{output}"
        assert not foreign, f"the tests imported another copy of the plugin: {foreign}"
        return outcome

    def check_noticed(self, copy: Path, mutation: Mutation) -> None:
        """Fails unless a test fails, by a comparison, in a copy with the mutation."""
        mutated = copy / "vaswani_plugin" / mutation.file
        mutated.write_text(mutation.apply(mutated.read_text("utf-8")), "utf-8")
        outcome = self.run(copy, [mutation.target])
        assert str(mutated.resolve()) in outcome.imported, f"{mutation.target} does not import {mutation.file}"
        assert outcome.status == 1, f"survived {mutation.target} (status {outcome.status}):\n{outcome.output}"
        assert outcome.failed, f"no test failed, but something around the tests did:\n{outcome.output}"
        assert set(outcome.failed.values()) <= _NOTICED, f"broken instead of changed: {outcome.failed}"
