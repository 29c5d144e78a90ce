"""Keeps large freed memory inside the process, so that the next update does not fetch it page by page again."""

import ctypes
import logging
import os
import platform

logger = logging.getLogger(__name__)

SWITCH = "VASWANI_KEEP_MEMORY"
"""The environment variable that turns this off when it is 0."""

# Parameters of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_KEPT = 2**30
_GROWN_BY = 2**26
_done = False


def keep_freed_memory() -> None:
    """Make glibc take all memory from the heap and give none back below a gigabyte; once, and said once in the log.

    Nothing happens without glibc, or where the user has set its thresholds or ``VASWANI_KEEP_MEMORY=0``.
    """
    global _done
    if _done:
        return
    _done = True
    if os.environ.get(SWITCH) == "0" or platform.libc_ver()[0] != "glibc":
        return
    if "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = ctypes.CDLL(None).mallopt
    # mallopt answers 1 for a value that it takes.
    if mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_TOP_PAD, _GROWN_BY):
        logger.info(f"freed memory is kept for the next update; {SWITCH}=0 turns this off")
