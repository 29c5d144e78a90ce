"""Files of a stranger's who wants code to run: pickles in every wrapping, and settings that are code when evaluated."""

import argparse
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch


class Call:
    """Pickles as a call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def make_folder(witness: Path) -> Call:
    return Call(os.mkdir, str(witness))


class Flags:
    """NumPy's type of objects, said to be one of plain numbers, so that bytes would pass for addresses."""

    def __reduce__(self) -> Any:
        return np.dtype, ("O8", False, True), (3, "|", None, None, None, -1, -1, 0)


class ArrayOfAddresses:
    def __reduce__(self) -> Any:
        function, arguments, _ = np.zeros(1).__reduce__()
        return function, arguments, (1, (1,), Flags(), False, (0x4141414141414141).to_bytes(8, "little"))


class NumberOfAddresses:
    def __reduce__(self) -> Any:
        return np.float64(0).__reduce__()[0], (Flags(), (0x4141414141414141).to_bytes(8, "little"))


def torch_zip(path: Path, state: Any) -> None:
    torch.save(state, path)


def torch_legacy(path: Path, state: Any) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


def torch_zip_of_protocol_4(path: Path, state: Any) -> None:
    torch.save(state, path, pickle_protocol=4)


def plain_pickle(path: Path, state: Any) -> None:
    path.write_bytes(pickle.dumps({"model": {}, "extra": state["extra"]}))


WRITERS = (torch_zip, torch_legacy, torch_zip_of_protocol_4, plain_pickle)

PLACES: "dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]]" = {
    "beside the rest": lambda state, hidden: {**state, "extra": hidden},
    "instead of everything": lambda state, hidden: hidden,
    "as a weight": lambda state, hidden: {**state, "model": {**state["model"], "weight": hidden}},
    "among the settings": lambda state, hidden: {**state, "cfg": {**state["cfg"], "model": hidden}},
    "as a key": lambda state, hidden: {**state, "extra": {hidden: 1}},
    "in old settings": lambda state, hidden: {**state, "args": argparse.Namespace(arch=hidden)},
    "in an array": lambda state, hidden: {**state, "extra": np.array([hidden], dtype=object)},
}

CODES: "dict[str, Callable[[Path], Any]]" = {
    "os.mkdir": make_folder,
    "os.system": lambda witness: Call(os.system, f"mkdir '{witness}'"),
    "eval": lambda witness: Call(eval, f"__import__('os').mkdir({str(witness)!r})"),
    "getattr": lambda witness: Call(getattr, make_folder(witness), "x"),
    "torch.load": lambda witness: Call(torch.load, str(witness)),
    "Path.mkdir": lambda witness: Call(Path.mkdir, witness),
}


def code_for(witness: Path) -> str:
    """An expression that makes a folder, and whose value is a list of layers that a model could have."""
    return f"[(16, 3)] * bool([__import__('os').mkdir({str(witness)!r})])"
