"""Values that settings spell as Python, such as "[(512, 3)] * 20 + [(1024, 3)]": read without evaluating code.

A checkpoint of a stranger's brings its model's settings along, so none of them may be run.
"""

import ast
import operator
from typing import Any, Callable, Dict

from fairseq.user_error import UserError

_MOST_ITEMS = 100_000
_LARGEST = 2.0**64

_OPERATIONS: "Dict[Any, Callable[[Any, Any], Any]]" = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def plain_value(text: Any) -> Any:
    """The value of ``text``: numbers, strings, True, False, None, lists, tuples and dictionaries.

    Numbers may be combined with + - * / // **, lists and tuples joined with + and repeated with *.

    Raises UserError for anything else, TypeError for what is not text.
    """
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not text")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        raise UserError(
            f"{text!r:.200} is not a plain value such as 0.1, True or [(512, 3)] * 2, so it was not evaluated"
        ) from None


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant) and not isinstance(node.value, (bytes, complex, type(...))):
        return node.value
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values)}  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        number = _number(_value(node.operand))
        return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _combined(type(node.op), _value(node.left), _value(node.right))
    raise ValueError


def _combined(operation: type, left: Any, right: Any) -> Any:
    if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        if operation is ast.Mult:
            items, times = (left, right) if isinstance(left, (list, tuple)) else (right, left)
            if type(times) is not int or len(items) * times > _MOST_ITEMS:
                raise ValueError
            return items * times
        if operation is ast.Add and len(left) + len(right) <= _MOST_ITEMS:
            return left + right
        raise ValueError
    left, right = _number(left), _number(right)
    if operation is ast.Pow and abs(right) > 64:
        raise ValueError
    return _number(_OPERATIONS[operation](left, right))


def _number(value: Any) -> Any:
    """``value`` if it is a number of a size that further operations can bear."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > _LARGEST:
        raise ValueError
    return value
