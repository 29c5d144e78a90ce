"""Reading a checkpoint without running anything that stands in it."""

import argparse
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from vaswani_plugin.checkpoints.members import damaged_member
from vaswani_plugin.checkpoints.plain_arrays import NUMPY_NAMES
from vaswani_plugin.errors import UserError

_ALLOWED: list[Any] = [argparse.Namespace, *((function, name) for name, function in NUMPY_NAMES.items())]
"""Beside tensors and plain containers: settings, and the NumPy arrays in which --eval-bleu keeps its counts."""


def read_checkpoint(path: Path, weights: bool = True) -> dict[str, Any]:
    """What fairseq saved: a dictionary with "model", "cfg", "optimizer_history", "extra_state" and others.

    torch's safe loader rebuilds tensors and plain containers only; the zip members' check sums, which torch does not
    look at, are compared first.

    Args:
        weights: False leaves the tensors' contents on disk until they are used, and unchecked; the rest is checked.

    Raises:
        ValueError: one sentence that names the file and what is wrong with it.
        OSError: the file is not there or cannot be read.
    """
    with open(path, "rb") as file:
        if not file.read(1):
            raise UserError(f"{path} is empty, not a checkpoint: it was cut off while being written")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("cut off, or not written by torch.save")
        damaged = damaged_member(path, weights)
        if damaged is not None:
            raise ValueError(f"the check sum of {damaged} differs, or its kind")
        with torch.serialization.safe_globals(_ALLOWED):
            state = torch.load(path, map_location="cpu", mmap=not weights, weights_only=True)
    except pickle.UnpicklingError as error:
        name = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = name.group(1) if name else "more than tensors and settings"
        raise UserError(
            f"{path} holds {what}, which no fairseq checkpoint needs: refused, nothing in it was run"
        ) from None
    except Exception as error:  # damaged bytes can fail anywhere inside zipfile and torch
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise UserError(f"{path} is not a whole checkpoint ({reason}): restore the file or use another") from None
    model = state.get("model") if isinstance(state, dict) else None
    if not isinstance(model, dict) or not model or not all(map(torch.is_tensor, model.values())):
        raise UserError(f"{path} holds no model weights: it is not a fairseq checkpoint")
    return state


def num_updates(state: dict[str, Any]) -> int:
    """The update after which a checkpoint was written; 0 where it does not say."""
    history = state.get("optimizer_history")
    newest = history[-1] if isinstance(history, list) and history else None
    updates = newest.get("num_updates") if isinstance(newest, dict) else None
    return updates if isinstance(updates, int) else 0
