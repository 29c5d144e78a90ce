"""Progress is for a person at a terminal, and leaves nothing behind."""

import io
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest

from vaswani_plugin import cli
from vaswani_plugin.data.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("encode", interval=0) as progress:
        progress.advance(1000)
        progress.advance(234)
    return str(stream.getvalue())


def test_a_terminal_shows_one_line_that_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *cleared = shown(Terminal(), monkeypatch).split("\r\x1b[K")[1:]
    assert first.startswith("encode: 1,000 lines (")
    assert second.startswith("encode: 1,234 lines (")
    assert cleared == [""]


def test_a_file_or_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == ""


def test_commands_show_it_on_a_terminal_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """Cleaning with the terminal as standard error, then with a pipe; the result is on standard output both times."""
    monkeypatch.setattr(Progress.__init__, "__defaults__", ("lines", 0.0))
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("one\ntwo\n")
    command = ["clean", "--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.de"), "--output"]
    ours, theirs = pty.openpty()
    with monkeypatch.context() as context, open(theirs, "w", closefd=True) as terminal:
        context.setattr(sys, "stderr", terminal)
        assert cli.main([*command, str(tmp_path / "b")]) == 0
        assert os.read(ours, 4096).startswith(b"\r\x1b[Kclean: 1 pairs (")
    os.close(ours)
    assert cli.main([*command, str(tmp_path / "c")]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    assert captured.out.count("2 pairs read\n") == 2
