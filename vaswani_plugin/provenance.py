"""What a training was started with, for its log: versions, machine, command line."""

import os
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fairseq
import torch

import vaswani_plugin


def provenance() -> str:
    """One line: "vaswani_plugin 0.1.0, fairseq 0.12.2, ...; started as: fairseq-train DATA ..."."""
    versions = {
        "vaswani_plugin": vaswani_plugin.__version__,
        "fairseq": _fairseq_version(),
        "torch": torch.__version__,
        "Python": platform.python_version(),
    }
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores"
    # A line feed in an argument stays inside its quotes, but must not end the log's line.
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]).replace("\n", " ")
    return f"{named}, {platform.system()} {platform.machine()}, {device}; started as: {command}"


def _fairseq_version() -> str:
    try:
        return version("fairseq")  # with the mark of a mended one, which __version__ lacks
    except PackageNotFoundError:
        return fairseq.__version__
