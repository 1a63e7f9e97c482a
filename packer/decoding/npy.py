"""Read NumPy arrays in files: `.npy` with a strict header. NumPy would evaluate the header, and load pickles.

Nothing else in the packer reads such headers.
"""

from __future__ import annotations

import re
import struct
from io import BytesIO
from math import prod
from typing import Any, BinaryIO

import numpy as np

from packer.decoding import arrays
from packer.decoding.header import FilePixels, Header
from packer.errors import BadPair

SIGNATURE = b"\x93NUMPY"
KIND = "npy"
MOST_HEADER = 4096
"""The longest header that is read. NumPy writes 118 bytes."""
_LENGTHS = {b"\1\0": "<H", b"\2\0": "<I", b"\3\0": "<I"}
_ENTRY = rb"\s*'(?:descr|fortran_order|shape)'\s*:\s*(?:'[^'\\]{1,64}'|True|False|\([\dL, ]{0,999}\))\s*"
_HEADER = re.compile(rb"\{%b,%b,%b,?\s*\}\s*" % (_ENTRY, _ENTRY, _ENTRY))
_DESCR = re.compile(rb"'descr'\s*:\s*'([^']*)'")
_ORDER = re.compile(rb"'fortran_order'\s*:\s*(True|False)")
_SHAPE = re.compile(rb"'shape'\s*:\s*\((?P<sides>|(?:\s*\d{1,19}L?\s*,)+(?:\s*\d{1,19}L?)?\s*)\)")
"""Python 2 wrote an L behind large numbers."""
_PLAIN = re.compile(rb"[<>|=]?[biufcSU][1-9]\d{0,8}")


class NpyHeader:
    """The facts in a header: the type, the shape, the order of the numbers, and where they begin.

    The type is one of numbers or texts, so it has a size, and no objects.
    """

    def __init__(self, file: BinaryIO) -> None:
        file.seek(0)
        if file.read(len(SIGNATURE)) != SIGNATURE:
            raise BadPair("is not a .npy file")
        version = file.read(2)
        if version not in _LENGTHS:
            raise BadPair(f"is a NumPy array of the unknown version {'.'.join(map(str, version))}")
        width = struct.calcsize(_LENGTHS[version])
        (length,) = struct.unpack(_LENGTHS[version], _whole(file, width))
        if length > MOST_HEADER:
            raise BadPair(f"is a NumPy array with a header of {length} bytes; at most {MOST_HEADER} are read")
        header = _whole(file, length)
        matches = [pattern.search(header) for pattern in (_DESCR, _ORDER, _SHAPE)]
        if not _HEADER.fullmatch(header) or None in matches:
            raise BadPair(
                "is a NumPy array with a header that is damaged, or of a type that is not plain numbers or texts"
            )
        descr, order, sides = (match[1] for match in matches if match is not None)
        if not _PLAIN.fullmatch(descr):
            raise BadPair(f"is a NumPy array of the type {descr.decode('latin-1')!r}; expected plain numbers or texts")
        try:
            self.dtype = np.dtype(descr.decode())
        except (TypeError, ValueError) as error:
            raise BadPair(f"is a NumPy array of the unknown type {descr.decode()!r}") from error
        self.is_fortran = order == b"True"
        self.shape = tuple(int(side.strip(b" L")) for side in sides.split(b",") if side.strip())
        self.offset = len(SIGNATURE) + 2 + width + length

    @property
    def size(self) -> int:
        """The bytes that a file with this header has."""
        size: int = self.offset + prod(self.shape) * self.dtype.itemsize
        return size


def _whole(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise BadPair("ends within its header")
    return data


def read(file: BinaryIO) -> Header:
    """Read the header. The file must have as many bytes as the shape demands, no more and no less."""
    array = NpyHeader(file)
    header = arrays.header_by(KIND, array.shape, array.dtype)
    _check_axes(array.shape, array.dtype)
    size = file.seek(0, 2)
    if size != array.size:
        more = size - array.size
        raise BadPair("is cut short" if more < 0 else f"is damaged: {more} bytes follow the array")
    return header


def _check_axes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse many bands that may be a side of the picture: the file does not say which axis they are."""
    arrays.check_bands_last(shape, dtype)
    if len(shape) < 3 or shape[2] <= arrays.FEW or dtype.kind == "b" or shape[2] < min(shape[:2]):
        return
    if shape[0] != shape[1] or shape[1] == shape[2]:
        raise BadPair(
            f"has the shape {shape}, and any side of it may be the bands: more than {arrays.FEW} are fewer than lines "
            "and columns, or these are equal. Save it as TIFF, or give the rows with a function (Rows)"
        )


def decode(data: bytes, header: Header) -> FilePixels:
    """Return the numbers in this machine's byte order."""
    array = NpyHeader(BytesIO(data))
    flat = np.frombuffer(data, array.dtype, prod(array.shape), array.offset)
    pixels = flat.reshape(array.shape, order="F" if array.is_fortran else "C")
    return arrays.stored(np.array(pixels, array.dtype.newbyteorder("="), order="C"))
