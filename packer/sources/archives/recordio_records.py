"""The records of MXNet's RecordIO: each is a magic number, a length and its data, padded to a multiple of four bytes.

Where the data have the magic number at such a multiple, it is left out and the record goes on as another part, so that
a reader can find the start of a record anywhere. The record of a picture begins with `IRHeader`: a flag, a label, an id
of 128 bits. A flag that is not 0 is the count of the numbers that follow, which are the label. The picture is the rest.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple

from packer.errors import BadPair

MAGIC = struct.pack("<I", 0xCED7230A)
MOST_BYTES = 1 << 29
"""A record has fewer bytes."""
_HEAD = struct.Struct("<4sI")
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_PICTURE = struct.Struct("<IfQQ")


class RecordSpan(NamedTuple):
    """The place of a record in its file, and the id in its header."""

    start: int
    size: int
    number: int


def records(file: BinaryIO, whole: int) -> Iterator[RecordSpan]:
    """Yield all records of a file of this size. Raise BadPair where it is damaged or cut off."""
    at = 0
    while at < whole:
        parts = list(_parts(file, at, whole))
        start, size = parts[0]
        header = _read(file, start, min(size, _PICTURE.size)) if len(parts) == 1 else _joined(file, parts)
        number = _header(header, at)[1]
        end = parts[-1][0] + parts[-1][1] + -parts[-1][1] % 4
        yield RecordSpan(at, end - at, number)
        at = end


def picture(record: bytes, start: int) -> bytes:
    """Return the bytes of the picture in a record at byte `start`, without its header and the numbers of its label."""
    file = BytesIO(record)
    data = _joined(file, list(_parts(file, 0, len(record), start)))
    first = _PICTURE.size + 4 * _header(data, start)[0]
    if first >= len(data):
        raise BadPair(f"has no picture in its {len(data)} bytes; numbers as labels are not masks")
    return data[first:]


def keys_in(index: bytes) -> dict[int, str]:
    """Return the key of each record by its place, from an index: lines of a key, a tab and the place."""
    lines = index.decode("utf-8", "surrogateescape").splitlines()
    matches = (re.fullmatch(r"(.+)\t(\d{1,19})", line) for line in lines)
    return {int(match[2]): match[1].zfill(8) if match[1].isdecimal() else match[1] for match in matches if match}


def _parts(file: BinaryIO, at: int, whole: int, before: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where the data of each part of a record begin, and their size. Messages add `before` to each place."""
    flag, total, expected = _FIRST, -len(MAGIC), (_WHOLE, _FIRST)
    while flag in (_FIRST, _MIDDLE):
        magic, number = _HEAD.unpack(_read(file, at, _HEAD.size))
        flag, size = number >> 29, number % MOST_BYTES
        total += size + len(MAGIC)
        if magic != MAGIC or flag not in expected or total >= MOST_BYTES:
            raise BadPair(f"is damaged: no record or part of one can be at byte {before + at}")
        end = at + _HEAD.size + size + -size % 4
        if end > whole:
            where = f"within a record of {size} bytes at byte {before + at}"
            raise BadPair(f"ends at byte {before + whole}, {where}; it was cut off")
        yield at + _HEAD.size, size
        at, expected = end, (_MIDDLE, _LAST)


def _joined(file: BinaryIO, parts: list[tuple[int, int]]) -> bytes:
    return MAGIC.join(_read(file, start, size) for start, size in parts)


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Return the numbers of the label, and the id."""
    if len(data) < _PICTURE.size:
        raise BadPair(f"has a record of {len(data)} bytes at byte {at}, without the header of a picture")
    flag, _, low, high = _PICTURE.unpack_from(data)
    return flag, high << 64 | low


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    data = file.read(size)
    if len(data) != size:
        raise BadPair(f"ends within a record at byte {at}; it was cut off")
    return data
