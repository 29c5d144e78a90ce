"""The sub-commands of ``vaswani``, one module each: its ``NAME``, its help, its arguments and what it runs.

A module imports what it runs inside ``run``, so that the help of all tools costs no import of any.
"""

from argparse import ArgumentParser, Namespace
from typing import Protocol

from vaswani_plugin.commands import (
    attention,
    audit,
    average,
    clean,
    describe,
    encode,
    export,
    package,
    report,
    score,
    translate,
    user_dir,
    vocabulary,
)


class Command(Protocol):
    NAME: str
    SUMMARY: str
    DETAILS: str
    EXAMPLE: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, options: Namespace) -> None: ...


COMMANDS: tuple[Command, ...] = (
    user_dir,
    clean,
    vocabulary,
    encode,
    average,
    score,
    package,
    translate,
    export,
    attention,
    report,
    describe,
    audit,
)
