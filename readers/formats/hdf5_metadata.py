"""The metadata of an HDF5 file as our packer writes it, checked in full: the data sets of the root group.

libhdf5 is not used: it acts on much that a file may ask for. FORMAT.md lists what is expected; anything else raises
ValueError. The names below are from the HDF5 File Format Specification.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from readers.formats.contents import Contents
from readers.formats.hdf5_objects import UNDEFINED, Message, messages, root_group

_DATASPACE, _LINK_INFO, _DATATYPE, _FILL, _LINK, _LAYOUT, _GROUP_INFO = 0x01, 0x02, 0x03, 0x05, 0x06, 0x08, 0x0A

_NUMBERS = {
    **{struct.pack("<B3xIHH", 0x10, size, 0, 8 * size): f"<u{size}" for size in (1, 2, 4, 8)},
    struct.pack("<BB2xIHH", 0x10, 0x08, 2, 0, 16): "<i2",
    struct.pack("<BBBxIHHBBBBI", 0x11, 0x20, 15, 2, 0, 16, 10, 5, 0, 10, 15): "<f2",
    struct.pack("<BBBxIHHBBBBI", 0x11, 0x20, 31, 4, 0, 32, 23, 8, 0, 23, 127): "<f4",
}
"""Datatypes: version and class, bits, size, bit offset, precision; of floats also exponent and mantissa."""
_TEXT = struct.pack("<BB2x", 0x13, 1)
"""The start of the datatype of byte strings padded with zeros. Their size follows."""
_NEVER_FILLED = b"\x03\x05"
_NO_INDEX = struct.pack("<BBQQ", 0, 0, UNDEFINED, UNDEFINED)
_CONTIGUOUS = struct.Struct("<BBQQ")  # version, class, position, bytes
_MOST_DIMENSIONS = 4


class Dataset(NamedTuple):
    """A data set: its numbers are in one piece from `start` on, inside the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def read_datasets(data: Contents, names: Collection[str]) -> dict[str, Dataset]:
    """Return the data sets of a file that has exactly these. Anything unexpected raises ValueError."""
    links = _links(data, {name.encode() for name in names})
    return {name: _dataset(data, name, links[name.encode()]) for name in names}


def _links(data: Contents, names: Collection[bytes]) -> dict[bytes, int]:
    """Return the position of each data set by its name in the root group."""
    links: dict[bytes, int] = {}
    for message in messages(data, root_group(data)):
        if message.kind == _LINK:
            name, position = _link(message.body)
            if name not in names or name in links:
                raise ValueError(f"it has a data set {name[:40]!r} that is not expected, or two")
            links[name] = position
        elif message not in (Message(_LINK_INFO, _NO_INDEX), Message(_GROUP_INFO, b"\0\0")):
            raise ValueError(f"its root group has an unexpected message of type {message.kind:#x}")
    if len(links) < len(names):
        raise ValueError(f"it has {len(links)} data sets, expected {len(names)}")
    return links


def _link(body: bytes) -> tuple[bytes, int]:
    """Return the name and the position of a hard link. Other links lead to names, or out of the file."""
    version, flags, length = body[:3].ljust(3, b"\xff")
    if (version, flags) != (1, 0) or len(body) != 3 + length + 8:
        raise ValueError("its root group has a link that is not a plain one")
    return body[3:-8], int.from_bytes(body[-8:], "little")


def _dataset(data: Contents, name: str, start: int) -> Dataset:
    bodies: dict[int, bytes] = {}
    for kind, body in messages(data, start):
        if kind in bodies or kind not in (_DATASPACE, _DATATYPE, _FILL, _LAYOUT):
            raise ValueError(f"{name!r} has an unexpected message of type {kind:#x}")
        bodies[kind] = body
    if len(bodies) != 4 or bodies[_FILL] != _NEVER_FILLED:
        raise ValueError(f"{name!r} is not a plain data set")
    shape, dtype = _shape(name, bodies[_DATASPACE]), _dtype(name, bodies[_DATATYPE])
    return Dataset(dtype, shape, _start(data, name, bodies[_LAYOUT], math.prod(shape) * dtype.itemsize))


def _shape(name: str, body: bytes) -> tuple[int, ...]:
    """Return the shape of a data set, which cannot grow."""
    rank = body[1] if len(body) > 4 else 0
    if body[:4] != bytes((2, rank, 1, 1)) or not 0 < rank <= _MOST_DIMENSIONS or len(body) != 4 + 16 * rank:
        raise ValueError(f"{name!r} does not have 1 to {_MOST_DIMENSIONS} dimensions of a fixed size")
    sides = struct.unpack_from(f"<{2 * rank}Q", body, 4)
    if sides[:rank] != sides[rank:] or not all(sides):
        raise ValueError(f"{name!r} does not have 1 to {_MOST_DIMENSIONS} dimensions of a fixed size")
    return sides[:rank]


def _dtype(name: str, body: bytes) -> np.dtype[Any]:
    if body in _NUMBERS:
        return np.dtype(_NUMBERS[body])
    size = int.from_bytes(body[4:], "little")
    if len(body) != 8 or body[:4] != _TEXT or not 0 < size < 2**31:
        raise ValueError(f"{name!r} has another type than plain numbers or byte strings")
    return np.dtype(f"S{size}")


def _start(data: Contents, name: str, body: bytes, expected: int) -> int:
    """Return where the numbers of a data set begin: in one piece, of the expected length, within the file."""
    if len(body) != _CONTIGUOUS.size or body[:2] != b"\x03\x01":
        raise ValueError(f"{name!r} does not have its numbers in one piece of this file")
    _, _, start, length = _CONTIGUOUS.unpack(body)
    if length != expected or start > len(data) - length:
        raise ValueError(f"{name!r} has {length} bytes at {start}, expected {expected} bytes within the file")
    return int(start)
