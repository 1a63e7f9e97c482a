"""`RowRef`: a row before it is loaded."""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = "\t"
"""Between the paths of a field that has a file for each class. None of them has a tab: it is a control character."""


class RowRef(NamedTuple):
    """A row as its source names it. References sort by split and key."""

    split: str
    key: str
    parts: tuple[str, ...]
    """The place of each field in the source: a path, a row number, an id; empty if the row lacks the field.

    No two rows have the same parts."""
