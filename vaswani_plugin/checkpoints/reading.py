"""Reading a checkpoint without running anything that stands in it."""

import argparse
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch

from vaswani_plugin.errors import UserError


def _allowed() -> list[Any]:
    """Beside tensors and plain containers: settings, and the NumPy arrays in which --eval-bleu keeps its counts."""
    kinds = ("int32", "int64", "float32", "float64")
    functions: tuple[Any, ...] = (np.zeros(0).__reduce__()[0], np.float64(0).__reduce__()[0])
    # Different versions of NumPy write the same functions under different names.
    modules = ("numpy.core.multiarray", "numpy._core.multiarray")
    named = [(function, f"{module}.{function.__name__}") for function in functions for module in modules]
    return [argparse.Namespace, np.ndarray, np.dtype, *{type(np.dtype(kind)) for kind in kinds}, *named]


def read_checkpoint(path: Path, weights: bool = True) -> dict[str, Any]:
    """What fairseq saved: a dictionary with "model", "cfg", "optimizer_history", "extra_state" and others.

    torch's safe loader rebuilds tensors and plain containers only; the zip members' check sums, which torch does not
    look at, are compared first.

    Args:
        weights: False leaves the tensors' contents on disk until they are used, and unchecked.

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
        damaged = _damaged_member(path) if weights else None
        if damaged is not None:
            raise ValueError(f"the check sum of {damaged} differs")
        with torch.serialization.safe_globals(_allowed()):
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


def _damaged_member(path: Path) -> Optional[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def num_updates(state: dict[str, Any]) -> int:
    """The update after which a checkpoint was written; 0 where it does not say."""
    history = state.get("optimizer_history")
    newest = history[-1] if isinstance(history, list) and history else None
    updates = newest.get("num_updates") if isinstance(newest, dict) else None
    return updates if isinstance(updates, int) else 0
