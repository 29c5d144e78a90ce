"""The Python pieces of the WMT14 recipes as modules; they are scripts in a folder that is no package."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "examples" / "wmt14"


@contextmanager
def importable() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))


def load(name: str) -> ModuleType:
    with importable():
        return importlib.import_module(name)
