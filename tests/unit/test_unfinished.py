"""What is being written, and what killed processes have left of it."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from vaswani_plugin.errors import UserError
from vaswani_plugin.unfinished import unfinished


def test_only_what_ended_processes_have_left_goes(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    target = tmp_path / "out[1].pt"
    (tmp_path / f"out[1].pt.{ended.pid}.tmp").mkdir()
    (tmp_path / f"out[1].pt.{ended.pid}.tmp" / "part").write_text("left")
    (tmp_path / f"out[1].pt.{os.getpid()}.tmp").mkdir()
    (tmp_path / f"out[1].pt.{10**30}.tmp").write_text("left")
    kept = {f"out[1].pt.{os.getppid()}.tmp", f"out1.pt.{ended.pid}.tmp", "out[1].pt.tmp", "out[1].pt.mine.tmp"}
    for name in kept:
        (tmp_path / name).write_text("of others")
    with unfinished(target) as temporary:
        assert {path.name for path in tmp_path.iterdir()} == kept
        temporary.write_text("half")
    assert {path.name for path in tmp_path.iterdir()} == kept


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_full_disk_is_a_sentence_also_in_torchs_words(tmp_path: Path, wrapped: bool) -> None:
    def fill(path: Path) -> None:
        path.write_text("half")
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            if wrapped:
                raise RuntimeError("unexpected pos 64 vs 0") from None
            raise

    with pytest.raises(UserError) as caught, unfinished(tmp_path / "out") as temporary:
        fill(temporary)
    assert str(caught.value) == (
        f"{tmp_path}/out could not be written (No space left on device): make room on the disk, or give another "
        "--output"
    )
    assert list(tmp_path.iterdir()) == []


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="shape"), unfinished(tmp_path / "new" / "out"):
        raise RuntimeError("shape")
