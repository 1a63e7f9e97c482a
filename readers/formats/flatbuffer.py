"""Tables of a flatbuffer, in which Arrow keeps its metadata. Positions are checked against the bytes that hold them."""

from __future__ import annotations

import struct
from typing import Any

_OFFSET, _VTABLE, _SLOT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


class Table:
    """A table: its fields have numbers, and any of them may be missing. Impossible positions raise ValueError."""

    def __init__(self, data: memoryview, start: int) -> None:
        self._data = data
        self._start = start
        self._slots = start - _number(data, _VTABLE, start)
        self._slots_end = self._slots + _number(data, _SLOT, self._slots)

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """Return the table that the bytes begin with."""
        return cls(data, _number(data, _OFFSET, 0))

    def whole(self, field: int, layout: str) -> int:
        """Return a number; 0 if it is missing."""
        at = self._at(field)
        return 0 if at is None else _number(self._data, struct.Struct(layout), at)

    def table(self, field: int) -> Table:
        """Return the table that a field points to."""
        at = self._at(field)
        if at is None:
            raise ValueError(f"table {field} is missing")
        return Table(self._data, self._follow(at))

    def has(self, field: int) -> bool:
        """Return whether a field is present."""
        return self._at(field) is not None

    def count(self, field: int) -> int:
        """Return the number of items of a list; 0 if it is missing."""
        at = self._at(field)
        return 0 if at is None else _number(self._data, _OFFSET, self._follow(at))

    def text(self, field: int) -> str:
        """Return a text; the empty one if it is missing."""
        return b"".join(self._items(field, 1)).decode()

    def tables(self, field: int) -> list[Table]:
        """Return the tables of a list. Compare `count` with what is expected first: a list may be long."""
        at, many = self.span(field, 4)
        return [Table(self._data, self._follow(start)) for start in range(at, at + 4 * many, 4)]

    def structs(self, field: int, layout: struct.Struct) -> list[tuple[Any, ...]]:
        """Return the records of a list. Compare `count` with what is expected first."""
        return list(map(layout.unpack, self._items(field, layout.size)))

    def _items(self, field: int, size: int) -> list[memoryview]:
        at, many = self.span(field, size)
        if size == 1:
            return [self._data[at : at + many]]
        return [self._data[start : start + size] for start in range(at, at + size * many, size)]

    def span(self, field: int, size: int) -> tuple[int, int]:
        """Return where the items of a list begin, and how many there are."""
        at = self._at(field)
        if at is None:
            return 0, 0
        start, many = self._follow(at) + 4, self.count(field)
        if many * size > len(self._data) - start:
            raise ValueError(f"a list of {many} items ends beyond its metadata")
        return start, many

    def _at(self, field: int) -> int | None:
        """Return where the value of a field is; None if it is missing."""
        slot = self._slots + 4 + 2 * field
        if slot + 2 > self._slots_end:
            return None
        offset = _number(self._data, _SLOT, slot)
        return self._start + offset if offset else None

    def _follow(self, at: int) -> int:
        return at + _number(self._data, _OFFSET, at)


def _number(data: memoryview, layout: struct.Struct, at: int) -> int:
    """Return a number of the bytes. `unpack_from` alone would count a negative position from the end."""
    if not 0 <= at <= len(data) - layout.size:
        raise ValueError(f"position {at} is not within {len(data)} bytes of metadata")
    number: int = layout.unpack_from(data, at)[0]
    return number
