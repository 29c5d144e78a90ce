"""Errors that a user can put right: told in one sentence, without a traceback, with a status that is not 0."""

import functools
import os
import sys
from typing import Callable, TypeVar

Result = TypeVar("Result")

# What a spawned worker ends with once it has told its error; its parent then has nothing to add.
TOLD_STATUS = 78


class UserError(ValueError):
    """A mistake in the command, its files or its environment; the message is one sentence for the user."""


class MissingFile(UserError, FileNotFoundError):
    """A file that the command needs is not there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def tell(error: BaseException) -> None:
    """Print ``error`` as the last word of this command."""
    sys.stdout.flush()
    print(f"{os.path.basename(sys.argv[0])}: error: {error}", file=sys.stderr, flush=True)


def tells_user_errors(command: Callable[..., Result]) -> Callable[..., Result]:
    """Decorator of a command's main function: a UserError is printed as a sentence and ends it with status 1."""

    @functools.wraps(command)
    def main(*args, **kwargs):
        from torch.multiprocessing import ProcessExitedException

        try:
            return command(*args, **kwargs)
        except UserError as error:
            tell(error)
            sys.exit(1)
        except ProcessExitedException as error:
            if error.exit_code == TOLD_STATUS:
                sys.exit(1)
            raise

    return main
