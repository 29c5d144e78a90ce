"""Reading what torch.save wrote, without running anything that the file may ask for.

torch's safe loader rebuilds tensors, plain containers and the types named here; every other type is refused before any
of its code runs. torch does not compare the check sums of a checkpoint's zip members, so that is done first.
"""

import argparse
import functools
import pickle
import re
import zipfile
from typing import Any, Callable, List, Tuple

import numpy as np
import torch
from fairseq.user_error import MissingFile, UserError


class CheckpointError(UserError):
    """A file that cannot be used as a checkpoint; the message names it and says why."""


def _also_known_as(function: Callable, module: str) -> Callable:
    """``function`` under the ``module`` that another version of NumPy writes into a pickle."""

    def renamed(*arguments: Any) -> Any:
        return function(*arguments)

    renamed.__module__ = module
    renamed.__name__ = renamed.__qualname__ = function.__name__
    return renamed


@functools.cache
def _allowed_types() -> Tuple[Callable, ...]:
    from fairseq.data.dictionary import Dictionary

    allowed: List[Callable] = [
        argparse.Namespace,  # "args" of old checkpoints, and the configuration of legacy models and tasks
        Dictionary,  # the state of tasks that keep their dictionary in the checkpoint
        np.ndarray,  # the counts of --eval-bleu among a run's meters
        np.dtype,
        *{type(np.dtype(kind)) for kind in ("bool", "int32", "int64", "float16", "float32", "float64")},
    ]
    numpy_functions: List[Any] = [np.float64(0).__reduce__()[0], np.zeros(0).__reduce__()[0]]
    for function in numpy_functions:
        for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            allowed.append(_also_known_as(function, module))
    return tuple(allowed)


def _check_members(path: str) -> None:
    """Compare every zip member with its check sum; raise CheckpointError that names the first that differs."""
    with zipfile.ZipFile(path) as archive:
        member = archive.testzip()
    if member is not None:
        raise CheckpointError(
            f"{path} is damaged: its member {member} does not match its check sum; restore the file or use another"
        )


def safe_load(path: str, map_location: Any = None) -> Any:
    """Return what torch.save put into the file at ``path``; ``map_location`` is torch.load's.

    Raises MissingFile, or CheckpointError for a file that is damaged, not from torch.save, or that holds other types.
    """
    path = str(path)
    # the block below takes its types out of torch's list again, so those of the caller's own are not put in
    listed = torch.serialization.get_safe_globals()
    allowed: List[Any] = [kind for kind in _allowed_types() if kind not in listed]
    try:
        with open(path, "rb") as file:
            if not file.read(1):
                raise CheckpointError(f"{path} is empty, so it is not a checkpoint; restore the file or use another")
        if zipfile.is_zipfile(path):
            _check_members(path)
        with torch.serialization.safe_globals(allowed):
            return torch.load(path, map_location=map_location, weights_only=True)
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise MissingFile(f"there is no checkpoint at {path}; check the path") from None
    except IsADirectoryError:
        raise CheckpointError(f"{path} is a folder, not a checkpoint; name a file in it") from None
    except PermissionError:
        raise CheckpointError(f"{path} cannot be read: permission denied") from None
    except torch.cuda.OutOfMemoryError:
        raise
    except pickle.UnpicklingError as error:
        raise CheckpointError(_refusal(path, str(error))) from None
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CheckpointError(
            f"{path} is not a complete checkpoint (truncated, or not written by torch.save): {reason}"
        ) from None


def _refusal(path: str, reason: str) -> str:
    """One sentence from the safe loader's long message."""
    name = re.search(r"Unsupported (?:global|class|type)[^:]*: (?:GLOBAL )?([\w.]+)", reason)
    if name is None:
        name = re.search(r"GLOBAL ([\w.]+)", reason)
    if name is not None:
        return (
            f"{path} was refused and nothing in it was run: it holds {name.group(1)}, which no fairseq checkpoint "
            "needs and which could run code while it is read"
        )
    return f"{path} was refused: it is not a complete checkpoint, or holds more than tensors and plain settings"
