"""Digests of a model folder's files, so that other bytes than the packaged ones are told, not translated with.

A checkpoint has check sums of its own; text and SentencePiece's format have none.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vaswani_plugin.errors import UserError

SETTINGS = "model.json"
"""What went into the folder, for people, and the digests of its files."""


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files ``names`` in ``folder``, in hexadecimal."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def check_digests(folder: Path) -> None:
    """Compare the files of ``folder`` with what its model.json says of them; a folder without one has nothing to say.

    Raises:
        ValueError: a file is missing or is not the one that was packaged; the sentence names it.
    """
    if not (folder / SETTINGS).is_file():
        return
    try:
        settings: Any = json.loads((folder / SETTINGS).read_bytes())
        expected = dict(settings.get("sha256", {}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{folder / SETTINGS} is damaged: restore the file, or package the model again") from None
    for name in expected:
        if Path(name).name != name or not (folder / name).is_file():
            raise UserError(f"{folder} has no {name}, which {SETTINGS} names: package the model again")
    for name, digest in digests(folder, expected).items():
        if digest != expected[name]:
            raise UserError(
                f"{folder / name} is not the file that was packaged (its SHA-256 differs from the one in {SETTINGS}): "
                "restore the file, or package the model again"
            )
