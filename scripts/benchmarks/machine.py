"""How fast the machine multiplies matrices."""
import argparse
from typing import Any
def report(result: dict[str, Any], options: argparse.Namespace) -> str:
    return ""
