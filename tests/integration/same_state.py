"""Whether two checkpoints hold the same, key for key and bit for bit."""

import re
from pathlib import Path
from typing import Any

import torch

# What must differ: the folder's name, and what a clock was read for.
_DIFFERS = re.compile(r"^\.(cfg\.checkpoint\.save_dir|extra_state\.(metrics|previous_training_time)\b.*)$")


def flatten(value: Any, path: str = "") -> "dict[str, Any]":
    """The leaves of nested dictionaries and lists under the names of the ways to them."""
    if isinstance(value, dict):
        return {key: leaf for name, item in value.items() for key, leaf in flatten(item, f"{path}.{name}").items()}
    if isinstance(value, list | tuple):
        return {key: leaf for n, item in enumerate(value) for key, leaf in flatten(item, f"{path}.{n}").items()}
    return {path: value}


def comparable(checkpoint: Path) -> "dict[str, Any]":
    """The leaves of a checkpoint but for its folder, its clock, and the starts before the one that wrote it."""
    state = torch.load(checkpoint, weights_only=True)
    state["optimizer_history"] = state["optimizer_history"][-1:]
    return {key: leaf for key, leaf in flatten(state).items() if not _DIFFERS.match(key)}


def different_keys(first: Path, second: Path) -> "list[str]":
    """The keys that only one of the checkpoints has, or that have other values in the other."""
    one, other = comparable(first), comparable(second)
    same = {key for key, value in one.items() if key in other and _equal(value, other[key])}
    return sorted((one.keys() | other.keys()) - same)


def _equal(value: Any, other: Any) -> bool:
    if torch.is_tensor(value) and torch.is_tensor(other):
        return torch.equal(value, other) and value.dtype == other.dtype
    return bool(type(value) is type(other) and value == other)
