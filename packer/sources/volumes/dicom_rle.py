"""Pixels of DICOM that are compressed by RLE: a part of PackBits for each byte of a number, the highest one first."""

from __future__ import annotations

import struct

import numpy as np

from packer.decoding.tiff.compressions import unpack_packbits
from packer.errors import BadPair

_ITEM, _END = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0"
_HEAD = 64
_MOST_RATIO = 64
"""Two bytes of PackBits stand for 128 at most."""


def unpack_rle(data: bytes, count: int, itemsize: int) -> bytes:
    """Return `count` numbers of `itemsize` bytes, the lowest one first, of the items behind the tag of the pixels."""
    frame = b"".join(_items(data)[1:])  # the first one has the places of frames
    if len(frame) < _HEAD or count > _MOST_RATIO * len(frame):
        raise BadPair(f"has {len(frame)} bytes of compressed pixels; its header demands {count} numbers")
    segments, *places = struct.unpack_from("<16I", frame)
    starts = places[:itemsize]
    if segments != itemsize or starts != sorted(starts) or starts[0] != _HEAD:
        raise BadPair(f"has {segments} parts of compressed pixels at {starts}; expected {itemsize}, from {_HEAD} on")
    numbers = np.empty((count, itemsize), np.uint8)
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(frame)], strict=True)):
        raw = unpack_packbits(frame[start:end], count)
        if len(raw) != count:
            raise BadPair(f"has a part of compressed pixels that unpacks to {len(raw)} bytes; expected {count}")
        numbers[:, itemsize - 1 - number] = np.frombuffer(raw, np.uint8)
    return numbers.tobytes()


def _items(data: bytes) -> list[bytes]:
    """Return the items of a sequence, up to its end."""
    items, at = [], 0
    while data[at : at + 4] != _END:
        if data[at : at + 4] != _ITEM or len(data) < at + 8:
            raise BadPair("has compressed pixels that are cut short")
        (length,) = struct.unpack_from("<I", data, at + 4)
        items.append(data[at + 8 : at + 8 + length])
        at += 8 + length
    return items
