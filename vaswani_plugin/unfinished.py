"""Names for what is being written: a file or folder takes its final name once it is complete."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vaswani_plugin.errors import UserError
from vaswani_plugin.leftovers import remove, remove_leftovers

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A name beside ``target`` for what the block writes and then moves to ``target``; folders missing above are made.

    Nothing is left under that name, and what killed processes have left under theirs is removed.

    Raises:
        UserError: the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    remove_leftovers(target)
    try:
        yield temporary
    except (OSError, RuntimeError) as error:
        reason = _full(error)
        if reason is None:
            raise
        raise UserError(
            f"{target} could not be written ({reason}): make room on the disk, or give another --output"
        ) from None
    finally:
        remove(temporary)


def _full(error: BaseException) -> str | None:
    """The system's words when a full disk is the cause, which torch puts into a RuntimeError of its own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return None
