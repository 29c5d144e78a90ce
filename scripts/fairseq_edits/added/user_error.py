"""Errors that a user can put right: told in one sentence, without a traceback, with a status that is not 0."""

import errno
import functools
import io
import os
import signal
import sys
import time
from typing import Any, Callable

# What a spawned worker ends with once it has told its error; its parent then has nothing to add.
TOLD_STATUS = 78

# What a shell reports for a command that SIGTERM, SIGINT or SIGPIPE ended.
STOP_STATUS = 128 + signal.SIGTERM
_INTERRUPT_STATUS = 128 + signal.SIGINT
_PIPE_STATUS = 128 + signal.SIGPIPE


class UserError(ValueError):
    """A mistake in the command, its files or its environment; the message is one sentence for the user."""

    is_user_error = True
    of_all_workers = False


class MissingFile(UserError, FileNotFoundError):
    """A file that the command needs is not there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def is_user_error(error: BaseException) -> bool:
    """Whether ``error`` is the user's to put right: a file, a full disk or memory, or an ``is_user_error``.

    A plugin marks its own exceptions with that attribute, so that it need not import this module.
    """
    if isinstance(error, OSError):
        named = error.filename is not None or isinstance(error, FileNotFoundError)
        return named or error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "is_user_error", False) is True or _is_out_of_memory(error)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "DefaultCPUAllocator" in text)


def sentence(error: BaseException) -> str:
    """What is wrong, in one line."""
    if _is_out_of_memory(error):
        return "there is not enough memory; give a smaller --max-tokens, --batch-size or --beam"
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no file {error.filename}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror is not None:
        return f"a file could not be written: {error.strerror}"
    return " ".join(str(error).split())


# How long a worker waits with its own words, in seconds: what all of them found, the first one tells, and ends them.
_FIRST_WORD = 3.0


def tell(error: BaseException) -> None:
    """Print ``error`` as the last word of this command.

    An error that every worker has come to is marked ``of_all_workers``; the first worker alone prints it.
    """
    sys.stdout.flush()
    if _is_later_worker():
        time.sleep(_FIRST_WORD)
        if isinstance(error, UserError) and error.of_all_workers:
            return
    print(f"{os.path.basename(sys.argv[0])}: error: {sentence(error)}", file=sys.stderr, flush=True)


def _is_later_worker() -> bool:
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized() and distributed.get_rank() > 0


def _speak_utf8() -> None:
    # Text in and out is UTF-8 whatever the locale; a locale without some character ended the command there.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def tells_user_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a command's main function: a mistake of the user is told, and ends it with status 1."""

    @functools.wraps(command)
    def main(*args: Any, **kwargs: Any) -> Any:
        from torch.multiprocessing import ProcessExitedException

        _speak_utf8()
        try:
            return command(*args, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code == TOLD_STATUS:
                sys.exit(1)
            if error.exit_code in (STOP_STATUS, -signal.SIGTERM):
                sys.exit(STOP_STATUS)
            if error.signal_name is None:
                raise
            tell(
                UserError(
                    f"worker {error.error_index} was ended by {error.signal_name} (the system sends SIGKILL when "
                    "memory runs out); a training goes on from its last checkpoint when its command is given again"
                )
            )
            sys.exit(1)
        except KeyboardInterrupt:
            sys.stdout.flush()
            print(f"{os.path.basename(sys.argv[0])}: interrupted", file=sys.stderr, flush=True)
            sys.exit(_INTERRUPT_STATUS)
        except BrokenPipeError:
            # The reader has gone; Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_PIPE_STATUS)
        except Exception as error:
            if not is_user_error(error):
                raise
            tell(error)
            sys.exit(1)

    return main
