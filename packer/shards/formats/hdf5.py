"""HDF5: one file of contiguous, uncompressed datasets, large ones on a boundary of 4096 bytes, for memory maps.

The metadata is written here and not by libhdf5, which puts more than 8 datasets into another structure. FORMAT.md draws
it; the names below are from the HDF5 File Format Specification. Blocks follow each other: the superblock, the root
group with a link to each dataset, the headers of the datasets, then their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.direct_file import DirectFile
from packer.shards.formats import ShardArrays
from readers.contract.fields import Field
from readers.formats.hdf5 import SUFFIX
from readers.formats.hdf5_checksum import lookup3

LARGE, SMALL = 4096, 8
"""Datasets of this many bytes begin at a multiple of it; smaller ones at a multiple of 8."""

_UNDEFINED = 2**64 - 1
_ROOT = 48
"""The position of the root group: after the superblock and its checksum."""
_DATASPACE, _LINK_INFO, _DATATYPE, _FILL, _LINK, _LAYOUT, _GROUP_INFO = 0x01, 0x02, 0x03, 0x05, 0x06, 0x08, 0x0A
_FLOATS = {
    2: struct.pack("<BBBxIHHBBBBI", 0x11, 0x20, 15, 2, 0, 16, 10, 5, 0, 10, 15),
    4: struct.pack("<BBBxIHHBBBBI", 0x11, 0x20, 31, 4, 0, 32, 23, 8, 0, 23, 127),
}


def write(stem: Path, arrays: ShardArrays, fields: Sequence[Field]) -> dict[Path, str]:
    """Write one file with a dataset per column."""
    path = stem.with_name(stem.name + SUFFIX)
    sizes = [_ROOT, len(_root(dict.fromkeys(arrays, 0))), *(len(_dataset(array, 0)) for array in arrays.values())]
    *headers, end = list(accumulate(sizes))[1:]
    starts: list[int] = []
    for array in arrays.values():
        starts.append(_aligned(end, array.nbytes))
        end = starts[-1] + array.nbytes
    superblock = struct.pack("<8s4B4Q", b"\x89HDF\r\n\x1a\n", 2, 8, 8, 0, 0, _UNDEFINED, end, _ROOT)
    datasets = map(_dataset, arrays.values(), starts)
    with DirectFile(path) as file:
        file.write(b"".join([_checked(superblock), _root(dict(zip(arrays, headers, strict=True))), *datasets]))
        for array, start in zip(arrays.values(), starts, strict=True):
            file.write(bytes(start - file.size))
            file.write(array.data)
    return {path: file.digest}


def tool() -> str:
    return "hdf5 layout 1"


def _aligned(end: int, size: int) -> int:
    step = LARGE if size >= LARGE else SMALL
    return -(-end // step) * step


def _root(positions: dict[str, int]) -> bytes:
    """Return the header of the root group, with the position of each dataset by its name."""
    info = _message(_LINK_INFO, struct.pack("<BBQQ", 0, 0, _UNDEFINED, _UNDEFINED)) + _message(_GROUP_INFO, b"\0\0")
    links = (_message(_LINK, _link(name.encode(), position)) for name, position in positions.items())
    return _header(info + b"".join(links))


def _link(name: bytes, position: int) -> bytes:
    return struct.pack("<BBB", 1, 0, len(name)) + name + position.to_bytes(8, "little")


def _dataset(array: NDArray[Any], start: int) -> bytes:
    """Return the header of a dataset, whose numbers are at `start`."""
    rank, shape = array.ndim, array.shape
    space = struct.pack(f"<BBBB{2 * rank}Q", 2, rank, 1, 1, *shape, *shape)
    layout = struct.pack("<BBQQ", 3, 1, start, array.nbytes)
    parts = {_DATASPACE: space, _DATATYPE: _datatype(array.dtype), _FILL: b"\x03\x05", _LAYOUT: layout}
    return _header(b"".join(_message(kind, body) for kind, body in parts.items()))


def _datatype(dtype: np.dtype[Any]) -> bytes:
    size = dtype.itemsize
    if dtype.kind == "S":
        return struct.pack("<BB2xI", 0x13, 1, size)
    if dtype.kind == "f":
        return _FLOATS[size]
    return struct.pack("<BB2xIHH", 0x10, 0x08 if dtype.kind == "i" else 0, size, 0, 8 * size)


def _message(kind: int, body: bytes) -> bytes:
    return struct.pack("<BHB", kind, len(body), kind in (_DATATYPE, _FILL)) + body


def _header(messages: bytes) -> bytes:
    return _checked(b"OHDR" + struct.pack("<BBH", 2, 1, len(messages)) + messages)


def _checked(block: bytes) -> bytes:
    return block + lookup3(block).to_bytes(4, "little")
