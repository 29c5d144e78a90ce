"""Averaging of checkpoints (section 6.1: the last 5 of a base run, the last 20 of a big one)."""

import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint
from vaswani_plugin.errors import UserError
from vaswani_plugin.unfinished import unfinished

_NAMES = {
    "updates": (re.compile(r"checkpoint_\d+_(\d+)\.pt"), "checkpoint_EPOCH_UPDATE.pt", "--save-interval-updates"),
    "epochs": (re.compile(r"checkpoint(\d+)\.pt"), "checkpointEPOCH.pt", "--save-interval"),
}


def select_checkpoints(directory: Path, last: int, by: str) -> list[Path]:
    """The newest ``last`` checkpoints of a run, oldest first.

    ``checkpoint_last.pt`` counts as one of them if it was written after all of those, as at the end of a run.

    Args:
        by: "updates" or "epochs", which of fairseq's two kinds of names count.

    Raises:
        ValueError: there are fewer than ``last``, or ``last`` is below 1.
    """
    if last < 1:
        raise UserError(f"--last {last} must be at least 1")
    pattern, name, flag = _NAMES[by]
    matches = [(pattern.fullmatch(path.name), path) for path in directory.iterdir()]
    found = [path for _, path in sorted((int(match.group(1)), path) for match, path in matches if match)]
    final = directory / "checkpoint_last.pt"
    if final.exists() and (not found or _updates_of(final) > _updates_of(found[-1])):
        found.append(final)
    if len(found) < last:
        names = ", ".join(path.name for path in found) or "none"
        (other,) = set(_NAMES) - {by}
        others = sum(bool(_NAMES[other][0].fullmatch(path.name)) for path in directory.iterdir())
        instead = f", or choose among its {others} of {other} with --by {other}" if others >= last else ""
        raise UserError(
            f"{directory} has {len(found)} checkpoints by {by} ({names}), fewer than --last {last}: lower it, or train "
            f"with {flag} so that more files {name} are kept{instead}"
        )
    return found[-last:]


def _updates_of(path: Path) -> int:
    return num_updates(read_checkpoint(path, weights=False))


def average_checkpoints(paths: Sequence[Path], output: Path) -> None:
    """Write the mean of the checkpoints' weights, reading one at a time.

    The output is a fairseq checkpoint with the newest one's settings, without its optimiser's state. Sums are float64.
    A matrix that is tied in the model is averaged once and stays tied.

    Raises:
        ValueError: a file that cannot be read, whose weights are not all finite, or whose parameters differ from the
            first one's in name, shape, type, tying or number of heads; the sentence names the file and the parameter.
            Also if the output cannot be written.
    """
    if output.is_dir():
        raise UserError(f"--output {output} is a folder: give the name of a file, such as {output / 'averaged.pt'}")
    resolved = [path.resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise UserError(f"{path} is named twice: give each checkpoint once")
    if output.resolve() in resolved:
        raise UserError(f"--output {output} is one of the checkpoints to average: give it a name of its own")

    newest = read_checkpoint(paths[0])
    _check_finite(newest["model"], paths[0])
    heads = _heads(newest)
    sources = [{"file": paths[0].name, "num_updates": num_updates(newest)}]
    first = {name: (tensor.shape, tensor.dtype) for name, tensor in newest["model"].items()}
    owners = _owners(newest["model"])
    sums = {name: newest["model"][name].double() for name in set(owners.values())}
    for path in paths[1:]:
        state = read_checkpoint(path)
        _check_same(first, owners, state["model"], path, paths[0])
        _check_finite(state["model"], path)
        if _heads(state) != heads:
            raise UserError(
                f"{paths[0]} has {heads} attention heads and {path} {_heads(state)}: they are of different models"
            )
        for name, total in sums.items():
            total += state["model"][name]
        sources.append({"file": path.name, "num_updates": num_updates(state)})
        if num_updates(state) >= num_updates(newest):
            newest = state

    means = {name: _mean(total, len(paths), newest["model"][name]) for name, total in sums.items()}
    averaged: dict[str, Any] = {key: value for key, value in newest.items() if key != "last_optimizer_state"}
    averaged["model"] = copy(newest["model"])  # with torch's notes beside the weights
    averaged["model"].update({name: means[owners[name]] for name in newest["model"]})
    averaged["extra_state"] = {**(newest.get("extra_state") or {}), "averaged": sources}
    _write(averaged, output)


def _owners(model: Mapping[str, Tensor]) -> dict[str, str]:
    """For each parameter, the first one that lies on the same memory: itself, or the one that it is tied to."""
    seen: dict[Any, str] = {}
    return {name: seen.setdefault(_place(name, tensor), name) for name, tensor in model.items()}


def _place(name: str, tensor: Tensor) -> Any:
    return (tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.numel() else name


def _check_same(
    first: Mapping[str, Any], owners: Mapping[str, str], model: Mapping[str, Tensor], path: Path, first_path: Path
) -> None:
    for name in [*first, *model]:
        if name not in model or name not in first:
            here, there = (first_path, path) if name in first else (path, first_path)
            raise UserError(f"{here} has a parameter {name} and {there} has none: they are of different models")
    for name, (shape, dtype) in first.items():
        tensor = model[name]
        if tensor.shape != shape or tensor.dtype != dtype:
            raise UserError(
                f"{name} is {_describe(shape, dtype)} in {first_path} and {_describe(tensor.shape, tensor.dtype)} in "
                f"{path}: they are of different models"
            )
    if _owners(model) != owners:
        raise UserError(f"{path} ties other parameters to each other than {first_path}: they are of different models")


def _check_finite(model: Mapping[str, Tensor], path: Path) -> None:
    for name, tensor in model.items():
        if not tensor.isfinite().all():
            raise UserError(f"{path} has NaN or infinity in {name}: its training has failed, so average earlier ones")


def _heads(state: Mapping[str, Any]) -> Any:
    """h, the one size that no matrix shows; None where the settings do not say."""
    settings = state.get("cfg")
    model = settings.get("model") if isinstance(settings, Mapping) else None
    return model.get("num_heads") if isinstance(model, Mapping) else getattr(model, "num_heads", None)


def _describe(shape: torch.Size, dtype: torch.dtype) -> str:
    return f"{'x'.join(map(str, shape)) or 'a scalar'} {str(dtype).removeprefix('torch.')}"


def _mean(total: Tensor, count: int, newest: Tensor) -> Tensor:
    if not newest.is_floating_point():
        return newest  # a counter has no mean
    # The mean of half-precision weights is finer than they are; fairseq converts when it loads.
    return (total / count).to(torch.promote_types(newest.dtype, torch.float32))


def _write(state: dict[str, Any], output: Path) -> None:
    """Under the final name only once complete."""
    with unfinished(output) as temporary:
        with open(temporary, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, output)
