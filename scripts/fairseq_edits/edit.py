"""What a named edit of fairseq's source is, and how a list of them is applied to an unpacked source tree."""

from dataclasses import dataclass
from pathlib import Path


class EditError(Exception):
    """An edit does not fit the source tree; the message is one sentence that names the edit and the file."""


@dataclass(frozen=True)
class Replace:
    """Put ``new`` in place of ``old``, which must occur in ``file`` exactly ``count`` times."""

    file: str
    old: str
    new: str
    count: int = 1

    def __call__(self, text: str, edit_name: str) -> str:
        found = text.count(self.old)
        if found != self.count:
            raise EditError(
                f"edit {edit_name!r} expected its text {self.count} time(s) in {self.file} but found it {found} time(s)"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Cut:
    """Put ``new`` in place of everything from ``first`` up to (not including) ``until``; both must occur once."""

    file: str
    first: str
    until: str
    new: str = ""

    def __call__(self, text: str, edit_name: str) -> str:
        for marker in (self.first, self.until):
            found = text.count(marker)
            if found != 1:
                raise EditError(
                    f"edit {edit_name!r} expected a marker of its cut once in {self.file} but found it {found} time(s)"
                )
        start, end = text.index(self.first), text.index(self.until)
        if end < start:
            raise EditError(f"edit {edit_name!r} found the end of its cut before the beginning in {self.file}")
        return text[:start] + self.new + text[end:]


@dataclass(frozen=True)
class AddFile:
    """Copy our own module ``source`` (a file beside these edits) to ``file``, which must not exist yet."""

    file: str
    source: Path


@dataclass(frozen=True)
class Edit:
    """One named change: ``why`` says what breaks without it."""

    name: str
    why: str
    changes: tuple["Replace | Cut | AddFile", ...]

    def __init__(self, name: str, why: str, *changes: "Replace | Cut | AddFile") -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "why", why)
        object.__setattr__(self, "changes", changes)


def apply_edits(edits: "list[Edit] | tuple[Edit, ...]", root: Path) -> None:
    """Apply ``edits`` in order to the source tree at ``root``.

    Raises EditError at the first change that does not fit; files changed before it stay changed.
    """
    for edit in edits:
        for change in edit.changes:
            path = root / change.file
            if isinstance(change, AddFile):
                if path.exists():
                    raise EditError(f"edit {edit.name!r} adds {change.file}, but the source already has that file")
                path.write_bytes(change.source.read_bytes())
                continue
            if not path.is_file():
                raise EditError(f"edit {edit.name!r} needs {change.file}, but the source has no such file")
            text = path.read_bytes().decode("utf-8")
            path.write_bytes(change(text, edit.name).encode("utf-8"))
