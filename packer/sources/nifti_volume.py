"""`Volume`: a NIfTI file, version 1 or 2, plain or compressed by gzip. Its slices along the third axis are read here.

The header has fixed places, so it is read without a library: each number is checked before it decides how much memory
is taken.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from packer.errors import BadPair
from readers.contract.regular_files import open_raw

SUFFIXES = (".nii", ".nii.gz")
MOST_BYTES = 1 << 32
"""The most bytes of a volume. A worker keeps a compressed one whole in memory, because its checksum comes last."""
MOST_SLICES = 9_999
"""Their numbers have four digits in keys, so that they are sorted."""
MOST_RATIO = 1032
"""deflate makes no file smaller than this part of it."""
_GZIP = b"\x1f\x8b"
_HEAD = 544
_PIECE = 1 << 20
_TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}


@dataclass(frozen=True)
class Volume:
    """The facts in a header. Numbers in the file times `slope` plus `intercept` are the values."""

    path: Path
    dtype: np.dtype[Any]
    width: int
    height: int
    slices: int
    offset: int
    slope: float
    intercept: float
    is_compressed: bool

    @classmethod
    def open(cls, path: Path) -> Volume:
        """Read a header. Raise BadPair if it is not one of a single volume of numbers."""
        with open_raw(path) as file:
            start = file.read(2)
            file.seek(0)
            is_compressed = start == _GZIP
            head = _unpacked(file, _HEAD) if is_compressed else file.read(_HEAD)
            facts = _facts(head)
            volume = cls(path, *facts, is_compressed)
            length, needed = file.seek(0, 2), volume.offset + volume.size
            if length * MOST_RATIO < needed if is_compressed else length != needed:
                raise BadPair(f"has {length} bytes; its header demands {needed}{' unpacked' if is_compressed else ''}")
        return volume

    @property
    def slice_bytes(self) -> int:
        return self.dtype.itemsize * self.width * self.height

    @property
    def size(self) -> int:
        return self.slice_bytes * self.slices

    @property
    def is_scaled(self) -> bool:
        """True if the numbers in the file are not the values. A slope of 0 means that there is none."""
        return self.slope != 0 and (self.slope, self.intercept) != (1, 0)

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The type of the values: float32 if they are scaled, because then they are not whole any more."""
        return np.dtype(np.float32) if self.is_scaled else self.dtype.newbyteorder("=")

    def all_bytes(self) -> bytes:
        """Return the numbers of a compressed volume. Raise BadPair if its length or its checksum is wrong."""
        with open_raw(self.path) as file:
            data = _unpacked(file, self.offset + self.size + 1)
        if len(data) != self.offset + self.size:
            raise BadPair("unpacks to another length than its header demands")
        return data

    def raw_slice(self, number: int, unpacked: bytes | None = None) -> bytes:
        """Return the bytes of a slice. Those of a compressed volume are taken from what it unpacks to."""
        start = self.offset + number * self.slice_bytes
        if self.is_compressed:
            unpacked = self.all_bytes() if unpacked is None else unpacked
            return unpacked[start : start + self.slice_bytes]
        with open_raw(self.path) as file:
            file.seek(start)
            return file.read(self.slice_bytes)

    def values(self, raw: bytes) -> NDArray[Any]:
        """Return a slice (H,W): the first axis of the volume runs along the rows, the second down the columns."""
        if len(raw) != self.slice_bytes:
            raise BadPair("is cut short")
        numbers = np.frombuffer(raw, self.dtype).reshape(self.height, self.width)
        if not self.is_scaled:
            return np.array(numbers, self.value_dtype)
        return (numbers * np.float64(self.slope) + np.float64(self.intercept)).astype(np.float32)


def _unpacked(file: BinaryIO, most: int) -> bytes:
    """Return the first bytes that a gzip file unpacks to, `most` at most. It may have several parts."""
    found, unpacking = bytearray(), zlib_ng.decompressobj(wbits=31)
    rest = b""
    while len(found) < most:
        rest = rest or file.read(_PIECE)
        if not rest:
            break
        if unpacking.eof:
            unpacking = zlib_ng.decompressobj(wbits=31)
        try:
            found += unpacking.decompress(rest, most - len(found))
        except zlib_ng.error as error:  # type: ignore[misc]  # its stub calls this class an instance
            raise BadPair(f"is damaged ({error})") from error
        rest = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
    if len(found) < most and not unpacking.eof:
        raise BadPair("is cut short")
    return bytes(found)


def _facts(head: bytes) -> tuple[np.dtype[Any], int, int, int, int, float, float]:
    """Return type, width, height, slices, offset, slope and intercept."""
    for order in "<>":
        size = struct.unpack_from(order + "i", head)[0] if len(head) >= 4 else 0
        if size == 348 and head[344:348] == b"n+1\0":
            sides = struct.unpack_from(order + "8h", head, 40)
            code, bits = struct.unpack_from(order + "hh", head, 70)
            offset, slope, intercept = struct.unpack_from(order + "3f", head, 108)
            break
        if size == 540 and head[4:12] == b"n+2\0\r\n\x1a\n" and len(head) >= 540:
            sides = struct.unpack_from(order + "8q", head, 16)
            code, bits = struct.unpack_from(order + "hh", head, 12)
            offset, slope, intercept = struct.unpack_from(order + "qdd", head, 168)
            break
    else:
        raise BadPair("is not a NIfTI file of one part, .nii or .nii.gz")
    if code not in _TYPES or bits != 8 * np.dtype(_TYPES[code]).itemsize:
        raise BadPair(f"has numbers of the NIfTI type {code} with {bits} bits; only whole and floating-point are read")
    count, *sides_used = sides
    if not 2 <= count <= 7 or min(sides_used[:count]) < 1 or math.prod(sides_used[3:count]) != 1:
        raise BadPair(f"has the sides {sides_used[: max(count, 0)]}; expected three, of one volume")
    width, height, slices = (*sides_used[:count], 1)[:3]
    dtype = np.dtype(order + _TYPES[code])
    if not (head_size := size + 4) <= offset < 1 << 30 or offset != int(offset):
        raise BadPair(f"has its numbers at {offset}; expected {head_size} or more")
    if not all(map(math.isfinite, (slope, intercept))):
        slope, intercept = 0.0, 0.0
    if dtype.itemsize * width * height * slices > MOST_BYTES:
        raise BadPair(f"claims {width}x{height}x{slices} numbers; {MOST_BYTES >> 30} GiB are read at most")
    if slices > MOST_SLICES:
        raise BadPair(f"claims {slices} slices; {MOST_SLICES} are read at most")
    return dtype, width, height, slices, int(offset), slope, intercept
