"""What a killed process was writing, under ``FINAL_NAME.PROCESS.tmp`` or names that begin so."""

import glob
import os
import shutil
from contextlib import suppress
from typing import Any


def remove_leftovers(final_name: Any) -> None:
    """Remove what processes that are no more have left of ``final_name``, files and folders.

    What bears this process's own number is of an earlier one: in a container every start may have the same.
    """
    start = os.fspath(final_name)
    for left in glob.glob(glob.escape(start) + ".*.tmp*"):
        process = left[len(start) + 1 :].partition(".")[0]
        if process.isdecimal() and (int(process) == os.getpid() or not _runs(int(process))):
            with suppress(OSError):  # another user's
                remove(left)


def remove(path: Any) -> None:
    """A file, a link or a whole folder; nothing where there is nothing."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.remove(path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
