"""The Python pieces of the examples as modules; they are scripts in folders that are no packages."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(example: str, name: str) -> ModuleType:
    """``examples/EXAMPLE/NAME.py``, which may import what lies beside it."""
    sys.path.insert(0, str(EXAMPLES / example))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES / example))
