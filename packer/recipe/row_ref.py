"""`RowRef`: a row before it is loaded."""

from __future__ import annotations

from typing import NamedTuple

from packer.decoding.raw_file import SEPARATOR


class RowRef(NamedTuple):
    """A row as its source names it. References sort by split and key."""

    split: str
    key: str
    parts: tuple[str, ...]
    """The place of each field in the source: a path, a row number, an id; empty if the row lacks the field.

    No two rows have the same parts."""

    def files(self, number: int) -> list[str]:
        """Return the paths of a field; one is empty if a class has no file."""
        return files_of(self.parts[number])


def files_of(part: str) -> list[str]:
    """Return the paths in a part of a row."""
    return part.split(SEPARATOR)
