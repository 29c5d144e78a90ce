"""fairseq's commands in this process, which has imported everything already: for what each new process would repeat."""

import contextlib
import importlib
import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

from conftest import PAPER_OPTIMISER, PLUGIN, Result
from fairseq import checkpoint_utils

_TINY = ("--arch", "vaswani_tiny", "--num-layers", 2, "--d-model", 16, "--d-ff", 32, "--num-heads", 2)


def call(command: str, *arguments: Any, status: int = 0) -> Result:
    """Run a command as its script does; another exit status or an error that would be a traceback fails the test."""
    module = importlib.import_module("fairseq_cli." + command.removeprefix("fairseq-").replace("-", "_"))
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    found: Any = 0
    # A new process would not know the best validation of the training before.
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    with _streams(output), _arguments([command, *map(str, arguments)]):
        try:
            module.cli_main()
        except SystemExit as end:
            found = end.code or 0
    text = output.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]
    assert found == status, f"{command} {arguments} ended with {found}:\n{text[-4000:]}"
    return Result(found, text)


@contextlib.contextmanager
def _streams(output: io.TextIOWrapper) -> "Iterator[None]":
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = [logging.StreamHandler(output)]
    root.setLevel("INFO")
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)


@contextlib.contextmanager
def _arguments(words: "list[str]") -> "Iterator[None]":
    before = sys.argv
    sys.argv = words
    try:
        yield
    finally:
        sys.argv = before


def train(data: Any, save: Any, *extra: Any, **options: Any) -> Result:
    """One update of a very small model of the plugin's."""
    return call(
        *("fairseq-train", data, "--user-dir", PLUGIN, "--task", "vaswani_translation", *_TINY, *PAPER_OPTIMISER),
        *("--max-tokens", 200, "--cpu", "--num-workers", 0, "--max-update", 1, "--no-epoch-checkpoints"),
        *("--log-format", "simple", "--save-dir", save, *extra),
        **options,
    )


def generate(data: Any, path: Any, *extra: Any, **options: Any) -> Result:
    """Without a process that loads, whose end a process that goes on would wait for."""
    plugin = ("--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu", "--no-progress-bar", "--num-workers", 0)
    return call("fairseq-generate", data, *plugin, "--path", path, *extra, **options)


def interactive(data: Any, path: Any, source: Any, *extra: Any, **options: Any) -> Result:
    plugin = ("--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu", "--input", source)
    return call("fairseq-interactive", data, *plugin, "--path", path, *extra, **options)


def refusal(done: Result, command: str) -> str:
    """The sentence that a command ended with."""
    assert "Traceback" not in done.output
    start = f"{command}: error: "
    assert done.last_line.startswith(start), done.output[-2000:]
    return done.last_line.removeprefix(start)
