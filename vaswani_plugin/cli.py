"""The ``vaswani`` command: one sub-command for each tool around fairseq's own."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from vaswani_plugin.commands import COMMANDS

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_STATUSES = (
    "Exit status: 0 done; 1 an error, told in one line on standard error; 2 wrong arguments; 130 interrupted; 141 what "
    "reads the output has gone."
)


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps sentences, but no command, so that it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a sub-command; returns the exit status. An error of the user's is one line on standard error."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], None] = options.run
    try:
        run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        print(f"vaswani {options.tool}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (ValueError, OSError) as error:
        print(f"vaswani {options.tool}: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _sentence(error: Exception) -> str:
    """One line, with the file's name before the system's words for what went wrong."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vaswani", description="Tools for training Transformers with vaswani_plugin.", epilog=_STATUSES
    )
    tools = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for command in COMMANDS:
        tool = tools.add_parser(
            command.NAME,
            help=command.SUMMARY,
            description=f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}. {command.DETAILS}",
            epilog=f"example: {command.EXAMPLE}",
            formatter_class=_HelpFormatter,
        )
        command.add_arguments(tool)
        tool.set_defaults(run=command.run)
    return parser
