"""The members of a checkpoint's zip file, which torch takes as they are: here they are looked at first."""

import zipfile
from typing import Any, Optional

_FOLDER = 0x10
"""MS-DOS' bit among a member's attributes."""
_BLOCK = 1 << 20


def damaged_member(path: Any, weights: bool = True) -> Optional[str]:
    """The name of the first damaged member, or None.

    Its check sum differs, or it is marked as a folder: of such a one torch reads nothing, and takes what was in the
    memory before.

    Args:
        weights: False leaves the check sums of the tensors' contents unread.

    Raises:
        BadZipFile: the file is no zip file, or is cut off.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.external_attr & _FOLDER:
                return member.filename
            if not weights and "/data/" in member.filename:
                continue
            try:
                with archive.open(member) as file:
                    while file.read(_BLOCK):
                        pass
            except zipfile.BadZipFile:
                return member.filename
    return None
