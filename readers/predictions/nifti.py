"""NIfTI of version 1, whose places have 32 bits; of version 2, which fewer programs read, where a side is too long."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from readers.contract.errors import RequestError
from readers.contract.place import NIFTI, Place

CODES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768, "i8": 1024, "u8": 1280}
ALIGNED, MILLIMETRES = 2, 2
MOST_SIDE = 32_767
"""The longest side in a header of version 1."""
LEVEL = 4


def header(size: tuple[int, ...], bands: int | None, dtype: np.dtype[Any], place: Place | None) -> bytes:
    """Return the header of an array of this size, (D,H,W) or (H,W), or of an array with this number of bands."""
    code = CODES.get(dtype.str[1:])
    if code is None:
        raise RequestError(f"NIfTI has no numbers of {dtype}; convert them to {', '.join(sorted(CODES))}")
    if place is not None and place.kind != NIFTI:
        raise RequestError("a place on a map does not fit into a NIfTI file; write a .tif")
    used = [*size[::-1], *[1] * (3 - len(size)), bands] if bands is not None else list(size[::-1])
    sides = [*used, *[1] * (7 - len(used))]
    matrix = np.eye(3, 4) if place is None else _in_space(place)
    steps = np.sqrt((matrix[:, :3] ** 2).sum(0)).tolist()
    spacing = [1.0, *steps, *[1.0] * 4]
    rows = matrix.ravel().tolist()
    form, unit = (0, 0) if place is None else (ALIGNED, MILLIMETRES)
    if max(sides) <= MOST_SIDE:
        head = bytearray(352)
        struct.pack_into("<i", head, 0, 348)
        struct.pack_into("<8h", head, 40, len(used), *sides)
        struct.pack_into("<hh", head, 70, code, 8 * dtype.itemsize)
        struct.pack_into("<8f", head, 76, *spacing)
        struct.pack_into("<3f", head, 108, 352, 1, 0)
        head[123] = unit
        struct.pack_into("<h", head, 254, form)
        struct.pack_into("<12f", head, 280, *rows)
        head[344:348] = b"n+1\0"
        return bytes(head)
    head = bytearray(544)
    struct.pack_into("<i", head, 0, 540)
    head[4:12] = b"n+2\0\r\n\x1a\n"
    struct.pack_into("<hh", head, 12, code, 8 * dtype.itemsize)
    struct.pack_into("<8q", head, 16, len(used), *sides)
    struct.pack_into("<8d", head, 104, *spacing)
    struct.pack_into("<qdd", head, 168, 544, 1, 0)
    struct.pack_into("<i", head, 348, form)
    struct.pack_into("<12d", head, 400, *rows)
    struct.pack_into("<i", head, 500, unit)
    return bytes(head)


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a gzip file with these bytes. The same bytes give the same file."""
    packing = zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, 31)
    for piece in pieces:
        yield packing.compress(piece)
    yield packing.flush()


def _in_space(place: Place) -> NDArray[np.float64]:
    """Return the matrix of a volume; a slice becomes a volume of one slice, whose thickness is not known."""
    matrix = place.matrix
    if matrix.shape[1] == 4:
        return matrix
    normal = np.cross(matrix[:, 0], matrix[:, 1])
    return np.column_stack([matrix[:, :2], normal / np.linalg.norm(normal), matrix[:, 2]])
