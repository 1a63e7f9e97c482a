"""The footer of a Parquet file: where the bytes of its columns are. It is a message of Thrift's compact protocol.

pyarrow ends the process when it shows the chunks of a damaged footer, so it is not asked for them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

END = struct.Struct("<I4s")
"""Behind the footer: its length, and a magic number."""
MOST_BYTES = 64 << 20
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)
_GROUPS, _CHUNKS, _FACTS, _PATH, _BYTES, _DATA, _DICTIONARY = 4, 1, 3, 3, 7, 9, 11
"""The numbers of fields: row groups, their chunks, and what is known of a chunk."""
Ranges = list[tuple[int, int]]


def ranges_of(footer: bytes, columns: Sequence[str]) -> list[Ranges]:
    """Return the ranges of bytes of these columns and of the columns in them; none if the footer is damaged."""
    ranges: dict[tuple[str, ...], Ranges] = {}
    try:
        for group in _Message(footer).struct()[_GROUPS]:
            for chunk in group[_CHUNKS]:
                facts = chunk[_FACTS]
                path = tuple(name.decode() for name in facts[_PATH])
                if path[0] in columns:
                    ranges.setdefault(path, []).append(_range(facts))
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
        return []
    return list(ranges.values())


def _range(facts: Mapping[int, Any]) -> tuple[int, int]:
    start = min(facts[_DATA], facts.get(_DICTIONARY) or facts[_DATA])
    return start, start + facts[_BYTES]


class _Message:
    """Reads a message from its first byte on. It ends with an IndexError or a ValueError where it is damaged."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._read(kind)
        return fields

    def _read(self, kind: int) -> Any:
        if kind in _WHOLE:
            return self._whole()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._read(head & 15) for _ in range(size)]
        if kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            return [(self._read(kinds >> 4), self._read(kinds & 15)) for _ in range(size)]
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        raise ValueError(f"a value of the kind {kind}")

    def _byte(self) -> int:
        byte = self._content[self._at]
        self._at += 1
        return byte

    def _bytes(self, size: int) -> bytes:
        if size > len(self._content) - self._at:
            raise ValueError("a text beyond the end")
        self._at += size
        return self._content[self._at - size : self._at]

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number without an end")

    def _whole(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
