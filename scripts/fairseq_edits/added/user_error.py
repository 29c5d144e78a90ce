"""Errors that a user can put right: told in one sentence, without a traceback, with a status that is not 0."""

import functools
import os
import signal
import sys
from typing import Any, Callable

# What a spawned worker ends with once it has told its error; its parent then has nothing to add.
TOLD_STATUS = 78

# What a shell reports for a command that SIGTERM ended.
STOP_STATUS = 128 + signal.SIGTERM


class UserError(ValueError):
    """A mistake in the command, its files or its environment; the message is one sentence for the user."""

    is_user_error = True


class MissingFile(UserError, FileNotFoundError):
    """A file that the command needs is not there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def is_user_error(error: BaseException) -> bool:
    """Whether ``error`` is the user's to put right: a missing file, or marked by an attribute ``is_user_error``.

    A plugin marks its own exceptions with that attribute, so that it need not import this module.
    """
    return isinstance(error, FileNotFoundError) or getattr(error, "is_user_error", False) is True


def tell(error: BaseException) -> None:
    """Print ``error`` as the last word of this command."""
    sys.stdout.flush()
    message = str(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        message = f"there is no file {error.filename}"
    print(f"{os.path.basename(sys.argv[0])}: error: {message}", file=sys.stderr, flush=True)


def tells_user_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a command's main function: a mistake of the user is told, and ends it with status 1."""

    @functools.wraps(command)
    def main(*args: Any, **kwargs: Any) -> Any:
        from torch.multiprocessing import ProcessExitedException

        try:
            return command(*args, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code == TOLD_STATUS:
                sys.exit(1)
            if error.exit_code in (STOP_STATUS, -signal.SIGTERM):
                sys.exit(STOP_STATUS)
            raise
        except Exception as error:
            if not is_user_error(error):
                raise
            tell(error)
            sys.exit(1)

    return main
