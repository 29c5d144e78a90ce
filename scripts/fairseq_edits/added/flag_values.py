"""Values that no run can have, whatever the command: told before anything is loaded."""

import ast
import math
from typing import Any, List, Mapping

from fairseq.user_error import UserError

# setting -> the smallest value with a meaning, None allowed beside it
_SMALLEST = {
    "max_tokens": 1,
    "max_tokens_valid": 1,
    "batch_size": 1,
    "batch_size_valid": 1,
    "required_batch_size_multiple": 1,
    "update_freq": 1,
    "workers": 1,
    "num_workers": 0,
    "seed": 0,
}
_LARGEST = {"seed": 2**32 - 1}


def check_values(settings: Mapping[str, Any]) -> None:
    """Raise UserError for a number among ``settings`` (names as in Python) that is NaN or beyond its limits."""
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        for number in _numbers(value):
            if math.isnan(number):
                raise UserError(f"{flag} nan is not a number; give one")
            smallest, largest = _SMALLEST.get(name, -math.inf), _LARGEST.get(name, math.inf)
            if number < smallest:
                raise UserError(f"{flag} {number} must be at least {smallest}")
            if number > largest:
                raise UserError(f"{flag} {number} must be at most {largest}")
    overrides = settings.get("model_overrides")
    if isinstance(overrides, str):
        _check_overrides(overrides)


def _numbers(value: Any) -> List[Any]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [number for number in values if isinstance(number, (int, float)) and not isinstance(number, bool)]


def _check_overrides(text: str) -> None:
    try:
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        parsed = None
    if not isinstance(parsed, dict):
        raise UserError(f"--model-overrides {text!r} is not a dictionary such as \"{{'dropout': 0.1}}\"")


def adam_betas(text: Any) -> Any:
    """The two numbers of --adam-betas, which fairseq used to evaluate as code."""
    try:
        first, second = ast.literal_eval(text) if isinstance(text, str) else text
        if 0 <= first < 1 and 0 <= second < 1:
            return first, second
    except (ValueError, SyntaxError, TypeError):
        pass
    raise UserError(f"--adam-betas {text} must be two numbers of at least 0 and below 1, such as '(0.9, 0.98)'")
