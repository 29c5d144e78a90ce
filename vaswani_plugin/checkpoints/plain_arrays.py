"""What a checkpoint may hold of NumPy: arrays and numbers of plain kinds, rebuilt without NumPy's own unpickling.

NumPy takes the flags of a type from the file, so that bytes of a stranger's could pass for addresses of objects.
"""

import math
from typing import Any

import numpy as np

_KINDS = ("b1", "i1", "u1", "i2", "i4", "i8", "f2", "f4", "f8")


class PlainKind:
    """Stands for numpy.dtype in a pickle: one of the kinds above, in either byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        if code not in _KINDS:
            raise ValueError(f"a NumPy type {code!r:.40}, which no checkpoint needs")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        version, order, *layout = state
        if version != 3 or order not in ("|", "<", ">") or any(part is not None for part in layout[:3]):
            raise ValueError("a NumPy type with parts, which no checkpoint needs")
        self.dtype = self.dtype.newbyteorder(order)


class PlainArray(np.ndarray):
    """Stands for numpy.ndarray in a pickle; it is one, and is written as one again."""

    def __new__(cls, *_: Any) -> "PlainArray":
        raise ValueError("a NumPy array that is made in another way than NumPy's own")

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, in_columns, content = state
        if type(kind) is not PlainKind or type(content) is not bytes or len(content) != _size(shape, kind):
            raise ValueError("a NumPy array whose content is not of its type and shape")
        checked: Any = (1, tuple(shape), kind.dtype, bool(in_columns), content)
        super().__setstate__(checked)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol)


def _size(shape: Any, kind: PlainKind) -> int:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("a NumPy array without a shape")
    return math.prod(shape) * kind.dtype.itemsize


def new_array(*_: Any) -> np.ndarray:
    """Stands for the function by which an array begins in a pickle."""
    return np.zeros(0).view(PlainArray)


def number(kind: Any, content: Any) -> Any:
    """Stands for the function that makes one NumPy number."""
    if type(kind) is not PlainKind or type(content) is not bytes or len(content) != kind.dtype.itemsize:
        raise ValueError("a NumPy number whose content is not of its type")
    return np.frombuffer(content, kind.dtype)[0]


def no_bytes() -> bytes:
    """Stands for the way in which a pickle says that an array has no content."""
    return b""


# Different versions of NumPy write the same functions under different names.
NUMPY_NAMES = {
    "numpy.dtype": PlainKind,
    "numpy.ndarray": PlainArray,
    "builtins.bytes": no_bytes,
    **{f"numpy.{module}.multiarray._reconstruct": new_array for module in ("core", "_core")},
    **{f"numpy.{module}.multiarray.scalar": number for module in ("core", "_core")},
}
