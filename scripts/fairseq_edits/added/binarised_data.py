"""Binarised data as fairseq-preprocess wrote it: index and text go together, and the dictionary knows every id.

The index says everything twice (lengths, and addresses that are sums of lengths), so damage to it shows. What the text
has no check sum for is an id that became another one of the dictionary.
"""

import os
import struct
from typing import Any, BinaryIO, Mapping, Optional

import numpy as np
from fairseq.user_error import UserError

_HEADER = struct.Struct("<9sQBQ")
_BLOCK = 2**20


def check_binarised(path: str, magic: bytes, types: Mapping[int, Any], entries: Optional[int]) -> None:
    """Compare ``path``.idx with itself and with ``path``.bin; ids of the latter must be below ``entries``, if given.

    ``magic`` is what an index begins with, ``types`` those of its ids by code. Raises UserError that names the file.
    """
    index, text = path + ".idx", path + ".bin"
    with open(index, "rb") as file:
        header = file.read(_HEADER.size)
        found = _HEADER.unpack(header) if len(header) == _HEADER.size else (b"", 0, 0, 0)
        kind, sentences = np.dtype(types.get(found[2], np.float64)), found[3]
        whole = os.path.getsize(index) == _HEADER.size + 12 * sentences
        if found[:2] != (magic, 1) or kind.kind not in "iu" or not whole:
            raise _damaged(index, "it is not the index that fairseq-preprocess wrote, or was cut off")
        size = _size_of_text(file, sentences, kind.itemsize)
    if size is None:
        raise _damaged(index, "the lengths of sentences and their addresses in it contradict each other")
    if os.path.getsize(text) != size:
        raise _damaged(text, f"it has {os.path.getsize(text):,} bytes, but its index speaks of {size:,}")
    if entries is not None and size:
        _check_ids(text, kind, entries)


def _size_of_text(file: BinaryIO, sentences: int, itemsize: int) -> Optional[int]:
    """Bytes that the sentences take together, None where the lengths do not give the addresses."""
    end = 0
    for first in range(0, sentences, _BLOCK):
        count = min(_BLOCK, sentences - first)
        file.seek(_HEADER.size + 4 * first)
        lengths = np.fromfile(file, np.int32, count).astype(np.int64) * itemsize
        file.seek(_HEADER.size + 4 * sentences + 8 * first)
        addresses = np.fromfile(file, np.int64, count)
        ends = end + lengths.cumsum()
        if lengths.min() < 0 or not np.array_equal(addresses, ends - lengths):
            return None
        end = int(ends[-1])
    return end


def _check_ids(text: str, kind: np.dtype, entries: int) -> None:
    with open(text, "rb") as file:
        while len(ids := np.fromfile(file, kind, _BLOCK)):
            lowest, highest = int(ids.min()), int(ids.max())
            if lowest < 0 or highest >= entries:
                raise _damaged(
                    text,
                    f"it has the id {lowest if lowest < 0 else highest}, but the dictionary has {entries:,} entries, "
                    "so it is damaged or was binarised with another dictionary",
                )


def _damaged(path: str, what: str) -> UserError:
    return UserError(f"{path} cannot be used: {what}; run fairseq-preprocess again, or copy the data again")
