"""Reading what torch.save wrote, without running anything that the file may ask for.

torch's safe loader rebuilds tensors, plain containers and the types named here; every other type is refused before any
of its code runs. torch does not compare the check sums of a checkpoint's zip members, so that is done first.
"""

import argparse
import pickle
import re
import zipfile
from typing import Any, Callable, List, Tuple, Union

import numpy as np
import torch
from fairseq.user_error import MissingFile, UserError

AllowedType = Union[type, Callable, Tuple[Any, str]]


class CheckpointError(UserError):
    """A file that cannot be used as a checkpoint; the message names it and says why."""


def _allowed_types() -> List[AllowedType]:
    from fairseq.data.dictionary import Dictionary

    scalar = np.float64(0).__reduce__()[0]
    return [
        argparse.Namespace,  # "args" of old checkpoints, and the configuration of legacy models and tasks
        Dictionary,  # the state of tasks that keep their dictionary in the checkpoint
        np.dtype,
        *{type(np.dtype(kind)) for kind in ("bool", "int32", "int64", "float16", "float32", "float64")},
        # one function, under the name that NumPy 1 and the one that NumPy 2 writes
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
    ]


def _numpy_array_types() -> List[AllowedType]:
    rebuild = np.zeros(0).__reduce__()[0]
    return [
        np.ndarray,
        (rebuild, "numpy.core.multiarray._reconstruct"),
        (rebuild, "numpy._core.multiarray._reconstruct"),
    ]


def _check_members(path: str) -> None:
    """Compare every zip member with its check sum; raise CheckpointError that names the first that differs."""
    with zipfile.ZipFile(path) as archive:
        member = archive.testzip()
    if member is not None:
        raise CheckpointError(
            f"{path} is damaged: its member {member} does not match its check sum; restore the file or use another"
        )


def safe_load(path: str, map_location: Any = None, numpy_arrays: bool = False) -> Any:
    """Return what torch.save put into the file at ``path``.

    ``map_location`` is torch.load's. ``numpy_arrays`` also allows arrays, which no checkpoint holds.
    Raises MissingFile, or CheckpointError for a file that is damaged, not from torch.save, or that holds other types.
    """
    allowed = _allowed_types() + (_numpy_array_types() if numpy_arrays else [])
    path = str(path)
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
