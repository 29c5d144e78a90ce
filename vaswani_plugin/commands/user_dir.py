"""vaswani user-dir."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import vaswani_plugin

NAME = "user-dir"
SUMMARY = "print the folder that fairseq takes as --user-dir"
DETAILS = ""
EXAMPLE = 'fairseq-train DATA --user-dir "$(vaswani user-dir)" --task vaswani_translation --arch vaswani_base ...'


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(options: Namespace) -> None:
    print(Path(vaswani_plugin.__file__).resolve().parent)
