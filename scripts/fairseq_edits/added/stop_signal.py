"""SIGTERM during training: the update in hand is finished, a checkpoint is written, and the command ends with 143."""

import contextlib
import mmap
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Optional

# One byte that forked data workers share: 1 while their parent is training and answers SIGTERM itself.
_ANSWERED_BY_PARENT = mmap.mmap(-1, 1)


class StopSignal:
    """Remembers inside a ``with`` block that SIGTERM came; outside of one the signal ends the process at once.

    ``requested`` is this process's own; the workers of a training add theirs up (Trainer.stop_agreed), so that all of
    them stop after the same update.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def _remember(self, number: int, frame: Optional[FrameType]) -> None:
        self.requested = True

    def __enter__(self) -> "StopSignal":
        # Python sets signal handlers in the main thread only; elsewhere training runs without this.
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._remember)
            _ANSWERED_BY_PARENT[0] = 1
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._previous is not None:
            _ANSWERED_BY_PARENT[0] = 0
            signal.signal(signal.SIGTERM, self._previous)


def leave_to_parent(worker_id: int) -> None:
    """worker_init_fn of a DataLoader: SIGTERM for a whole process group must not end the workers before the parent."""

    def answer(number: int, frame: Optional[FrameType]) -> None:
        if not _ANSWERED_BY_PARENT[0]:
            os._exit(0)  # as torch's own handler does for a parent that shuts down

    signal.signal(signal.SIGTERM, answer)


def forward_to(context: Any) -> None:
    """Hand every SIGTERM that this process gets on to the workers of a torch.multiprocessing spawn ``context``."""

    def forward(number: int, frame: Optional[FrameType]) -> None:
        for pid in context.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, forward)


def interrupt(context: Any) -> None:
    """End the workers of a spawn ``context`` after SIGINT, which a terminal sends to them too, but ``kill`` does not.

    Those that have not ended after some seconds get the signal, and those that then do not end are killed.
    """

    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in context.processes:
            process.join(max(0, end - time.monotonic()))

    wait(3)
    for number in (signal.SIGINT, signal.SIGKILL):
        for process in context.processes:
            if process.is_alive():
                os.kill(process.pid, number)
        wait(10)
