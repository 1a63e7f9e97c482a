"""Read NumPy arrays in files: `.npy` with a strict header. NumPy would evaluate the header, and load pickles."""

from __future__ import annotations

import re
import struct
from io import BytesIO
from math import prod
from typing import BinaryIO

import numpy as np

from packer.decoding import arrays
from packer.decoding.header import Header, Stored
from packer.errors import BadPair

SIGNATURE = b"\x93NUMPY"
KIND = "npy"
MOST_HEADER = 4096
"""The longest header that is read. NumPy writes 118 bytes."""
_LENGTHS = {b"\1\0": "<H", b"\2\0": "<I", b"\3\0": "<I"}
_ENTRY = rb"\s*'(?:descr|fortran_order|shape)'\s*:\s*(?:'[^'\\]{1,64}'|True|False|\([\d, ]{0,99}\))\s*"
_HEADER = re.compile(rb"\{%b,%b,%b,?\s*\}\s*" % (_ENTRY, _ENTRY, _ENTRY))
_DESCR = re.compile(rb"'descr'\s*:\s*'([^']*)'")
_ORDER = re.compile(rb"'fortran_order'\s*:\s*(True|False)")
_SHAPE = re.compile(rb"'shape'\s*:\s*\((?P<sides>(?:\s*\d{1,10}\s*,)+(?:\s*\d{1,10})?)\s*\)")
_NUMBERS = re.compile(rb"[<>|][buif][1248]")


class _Array:
    """The facts in a header: the type, the shape, the order of the numbers, and where they begin."""

    def __init__(self, file: BinaryIO) -> None:
        file.seek(len(SIGNATURE))
        version = file.read(2)
        if version not in _LENGTHS:
            raise BadPair(f"is a NumPy array of the unknown version {'.'.join(map(str, version))}")
        width = struct.calcsize(_LENGTHS[version])
        (length,) = struct.unpack(_LENGTHS[version], file.read(width))
        if length > MOST_HEADER:
            raise BadPair(f"is a NumPy array with a header of {length} bytes; at most {MOST_HEADER} are read")
        header = file.read(length)
        if len(header) < length:
            raise BadPair("ends within its header")
        found = [pattern.search(header) for pattern in (_DESCR, _ORDER, _SHAPE)]
        if not _HEADER.fullmatch(header) or None in found:
            raise BadPair("is a NumPy array with a header that is damaged, or of a type that is not one of numbers")
        descr, order, sides = (match[1] for match in found if match is not None)
        if not _NUMBERS.fullmatch(descr):
            raise BadPair(f"is a NumPy array of the type {descr.decode('latin-1')!r}; {arrays.DTYPES}")
        try:
            self.dtype = np.dtype(descr.decode())
        except TypeError as error:
            raise BadPair(f"is a NumPy array of the unknown type {descr.decode()!r}") from error
        self.is_fortran = order == b"True"
        self.shape = tuple(int(side) for side in sides.split(b",") if side.strip())
        self.offset = len(SIGNATURE) + 2 + width + length


def read(file: BinaryIO) -> Header:
    """Read the header. The file must have as many bytes as the shape demands, no more and no less."""
    array = _Array(file)
    header = arrays.header_by(KIND, array.shape, array.dtype)
    needed, found = array.offset + prod(array.shape) * array.dtype.itemsize, file.seek(0, 2)
    if found != needed:
        raise BadPair("is cut short" if found < needed else f"is damaged: {found - needed} bytes follow the array")
    return header


def decode(data: bytes, header: Header) -> Stored:
    """Return the numbers in this machine's byte order."""
    array = _Array(BytesIO(data))
    flat = np.frombuffer(data, array.dtype, prod(array.shape), array.offset)
    pixels = flat.reshape(array.shape, order="F" if array.is_fortran else "C")
    return arrays.stored(np.array(pixels, array.dtype.newbyteorder("="), order="C"))
