"""Files that a killed process was writing, under ``FINAL_NAME.PROCESS.tmp`` or names that begin so."""

import contextlib
import glob
import os


def remove_unfinished(final_name: str) -> None:
    """Remove what processes that are no more have left of ``final_name``."""
    for left in glob.glob(glob.escape(final_name) + ".*.tmp*"):
        process = left[len(final_name) + 1 :].partition(".")[0]
        if process.isdecimal() and not _runs(int(process)):
            with contextlib.suppress(OSError):  # another user's
                os.remove(left)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
