"""Reading what torch.save wrote, without running anything that the file may ask for.

torch's safe loader rebuilds tensors, plain containers and the types named here; every other type is refused before any
of its code runs. torch does not compare the check sums of a checkpoint's zip members, so that is done first.
"""

import argparse
import functools
import logging
import pickle
import re
import warnings
from typing import Any, List, Tuple

import torch
from fairseq.checkpoint_members import damaged_member
from fairseq.plain_arrays import NUMPY_NAMES
from fairseq.user_error import MissingFile, UserError

logger = logging.getLogger(__name__)

# By this torch tells its zip files from the ones of before version 1.6.
_ZIP_BEGINNING = b"PK\x03\x04"


class CheckpointError(UserError):
    """A file that cannot be used as a checkpoint; the message names it and says why."""


class DamagedCheckpoint(CheckpointError):
    """A file that was a checkpoint, or was to become one: empty, cut off, or with other bytes than were written."""


@functools.cache
def _allowed_types() -> Tuple[Any, ...]:
    from fairseq.data.dictionary import Dictionary

    return (
        argparse.Namespace,  # "args" of old checkpoints, and the configuration of legacy models and tasks
        Dictionary,  # the state of tasks that keep their dictionary in the checkpoint
        *((function, name) for name, function in NUMPY_NAMES.items()),  # the counts of --eval-bleu among the meters
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
            beginning = file.read(len(_ZIP_BEGINNING))
        if not beginning:
            raise DamagedCheckpoint(f"{path} is empty, so it is not a checkpoint; restore the file or use another")
        if beginning == _ZIP_BEGINNING:
            damaged = damaged_member(path)
            if damaged is not None:
                raise DamagedCheckpoint(
                    f"{path} is damaged: its member {damaged} does not match its check sum, or is marked as a folder; "
                    "restore the file or use another"
                )
        with torch.serialization.safe_globals(allowed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it meets in a file that it then refuses
            state = torch.load(path, map_location=map_location, weights_only=True)
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
        raise _refusal(path, str(error)) from None
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DamagedCheckpoint(
            f"{path} is not a complete checkpoint (truncated, or not written by torch.save): {reason}"
        ) from None
    if beginning != _ZIP_BEGINNING:
        logger.warning(f"{path} is in torch's format before 1.6, which has no check sums: damage would go unnoticed")
    return state


def _refusal(path: str, reason: str) -> CheckpointError:
    """One sentence from the safe loader's long message."""
    name = re.search(r"Unsupported (?:global|class|type)[^:]*: (?:GLOBAL )?([\w.]+)", reason)
    if name is None:
        name = re.search(r"GLOBAL ([\w.]+)", reason)
    if name is not None:
        return CheckpointError(
            f"{path} was refused and nothing in it was run: it holds {name.group(1)}, which no fairseq checkpoint "
            "needs and which could run code while it is read"
        )
    return DamagedCheckpoint(
        f"{path} was refused: it is not a complete checkpoint, or holds more than tensors and plain settings"
    )
