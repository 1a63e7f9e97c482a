"""Volumes written by hand, so that a test knows every number and every wrong header field."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

CODES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768, "i8": 1024, "u8": 1280}


def nifti(numbers: NDArray[Any], version: int = 1, slope: float = 1.0, intercept: float = 0.0) -> bytes:
    """Return a volume (columns, rows, slices) in its own byte order."""
    head = nifti_head(numbers.dtype, numbers.shape, version, slope, intercept)
    return head + numbers.tobytes(order="F")


def nifti_head(
    dtype: np.dtype[Any], shape: tuple[int, ...], version: int = 1, slope: float = 1.0, intercept: float = 0.0
) -> bytes:
    """Return what precedes the numbers of a volume."""
    order = ">" if dtype.byteorder == ">" else "<"
    sides = (len(shape), *shape, *[1] * (7 - len(shape)))
    code, bits = CODES[dtype.str[1:]], 8 * dtype.itemsize
    size, offset = (348, 352) if version == 1 else (540, 544)
    head = bytearray(offset)
    struct.pack_into(order + "i", head, 0, size)
    if version == 1:
        struct.pack_into(order + "8h", head, 40, *sides)
        struct.pack_into(order + "hh", head, 70, code, bits)
        struct.pack_into(order + "3f", head, 108, offset, slope, intercept)
        head[344:348] = b"n+1\0"
    else:
        head[4:12] = b"n+2\0\r\n\x1a\n"
        struct.pack_into(order + "hh", head, 12, code, bits)
        struct.pack_into(order + "8q", head, 16, *sides)
        struct.pack_into(order + "qdd", head, 168, offset, slope, intercept)
    return bytes(head)


def metaimage(numbers: NDArray[Any], is_packed: bool = False) -> bytes:
    """Return a volume (columns, rows, slices) of 16 bits as MetaImage."""
    sides = " ".join(map(str, numbers.shape))
    head = f"NDims = 3\nBinaryData = True\nCompressedData = {is_packed}\nOffset = 1 2 3\nDimSize = {sides}\n"
    data = numbers.astype("<i2").tobytes(order="F")
    text = f"{head}ElementType = MET_SHORT\nElementDataFile = LOCAL\n"
    return text.encode() + (zlib.compress(data) if is_packed else data)


def nrrd(numbers: NDArray[Any], is_packed: bool = False) -> bytes:
    """Return a volume (columns, rows, slices) of 16 bits as NRRD."""
    sides = " ".join(map(str, numbers.shape))
    head = f"NRRD0004\ntype: short\ndimension: 3\nspace: RAS\nsizes: {sides}\nendian: little\n"
    place = "space directions: (1,0,0) (0,2,0) (0,0,3)\nspace origin: (1,2,3)\n"
    data = numbers.astype("<i2").tobytes(order="F")
    text = f"{head}{place}encoding: {'gzip' if is_packed else 'raw'}\n\n"
    return text.encode() + (gzip.compress(data, mtime=0) if is_packed else data)
