"""Workers that lose each other: one was killed or has failed, or the network between them is down."""

import contextlib
import ctypes
import os
import re
import signal
import sys
from typing import Iterator, Optional

from fairseq.user_error import TOLD_STATUS, UserError, tell

_GO_ON = "a training goes on from its last checkpoint when its command is given again"

# How gloo, NCCL and the store that connects the workers word it, each in an error class of its own or none at all.
_WORDS = re.compile(r"gloo/|NCCL|TCPStore|client socket|server socket|Connection (closed|reset) by peer|Broken pipe")
_SOURCE_FILE = re.compile(r"\[[^\]]*/gloo/[^\]]*\]\s*")
_PR_SET_PDEATHSIG = 1


class LostWorker(UserError):
    """The other workers cannot be reached."""


@contextlib.contextmanager
def tells_no_connection(rank: Optional[int]) -> Iterator[None]:
    """Raises LostWorker for the errors with which torch says that the workers cannot be connected."""
    with _raises(
        "worker {rank} could not be connected with the others ({reason}): the first worker's address and port must be "
        "free there and reachable from all machines, through the network interface that GLOO_SOCKET_IFNAME (CPU) or "
        "NCCL_SOCKET_IFNAME (GPU) names",
        rank,
    ):
        yield


@contextlib.contextmanager
def tells_lost_workers(rank: Optional[int]) -> Iterator[None]:
    """Raises LostWorker for the errors with which torch says that a connection to another worker has ended."""
    with _raises(
        "worker {rank} has lost another one ({reason}): that one was killed or has failed, or the network is down; "
        + _GO_ON,
        rank,
    ):
        yield


@contextlib.contextmanager
def _raises(sentence: str, rank: Optional[int]) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not _WORDS.search(str(error)):
            raise
        first_line = _SOURCE_FILE.sub("", str(error).strip().split("\n")[0])
        reason = first_line.split(". This is typically")[0]  # gloo's advice
        raise LostWorker(sentence.format(rank=rank, reason=reason)) from error


def end_for_lack_of_progress(seconds: float) -> None:
    """End this process with a sentence, also while its main thread waits for other workers and hears no signal."""
    tell(
        LostWorker(
            f"there was no progress for {seconds:g} seconds (--heartbeat-timeout): another worker or the network "
            f"stands still; {_GO_ON}"
        )
    )
    os._exit(TOLD_STATUS)


def stop_with_parent() -> None:
    """Let Linux send this process SIGTERM when the process that started it ends, so that it does not go on alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
