"""`Volume`: a NIfTI file, version 1 or 2, plain or compressed by gzip. Its slices are read here.

The header has fixed places, so it is read without a library: each number is checked before it decides how much memory
is taken.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from packer.decoding.find_axes import axes_like
from packer.decoding.grid import Grid, GridTransform, turned, usable
from packer.decoding.turn import UNTURNED, Turn
from packer.errors import BadPair
from readers.contract.kinds import MOST_BANDS
from readers.contract.place import NIFTI, System
from readers.contract.regular_files import open_raw

SUFFIXES = (".nii", ".nii.gz")
THIRD = 2
"""The axis along which most scans have their slices, and along which a slice is stored in one piece."""
MOST_BYTES = 1 << 32
"""The most bytes that are read at once. A worker keeps them in memory, because the checksum of gzip comes last."""
IN_PARTS = "--volumes --encode image=tiles:64 --encode label=tiles:64 packs a volume in parts"
MOST_SLICES = 9_999
"""Their numbers have four digits in keys, so that they are sorted."""
MOST_RATIO = 1032
"""deflate makes no file smaller than this part of it."""
_GZIP = b"\x1f\x8b"
_HEAD = 544
_PIECE = 1 << 16
"""Bytes that are read at once. What follows a part in them is copied for each part."""
_UNPACKED = 1 << 20
"""The most bytes that are unpacked at once."""
_PART, _SLACK = 1 << 10, 1 << 20
"""The bytes that take as long as a part of a gzip file, and the bytes that may be read before unpacking."""
_TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}


@dataclass(frozen=True)
class Volume:
    """The facts in a header. Numbers in the file times `slope` plus `intercept` are the values."""

    path: Path
    dtype: np.dtype[Any]
    sides: tuple[int, int, int]
    """In the order of the file's axes. Numbers next to each other along the first one are next to each other."""
    offset: int
    slope: float
    intercept: float
    is_compressed: bool
    turn: Turn = UNTURNED
    """The axes of the file as the column, the row and the slice of a row of the pack."""
    file_grid: Grid | None = None
    """The place of the voxels in the world, in the order of the file's axes, if the header says it."""
    channels: int = 1
    """The volumes of a file with four sides: channels, or times. They follow each other in the file."""

    @classmethod
    def open(cls, path: Path) -> Volume:
        """Read a header. Raise BadPair if it is not one of a single volume of numbers."""
        with open_raw(path) as file:
            start = file.read(2)
            file.seek(0)
            is_compressed = start == _GZIP
            head = b"".join(_unpacked(file, _HEAD)) if is_compressed else file.read(_HEAD)
            facts = _facts(head)
            grid = _grid(head, facts[1])
            volume = cls(path, *facts[:5], is_compressed=is_compressed, file_grid=grid, channels=facts[5])
            length, needed = file.seek(0, 2), volume.offset + volume.size
            if length * MOST_RATIO < needed if is_compressed else length != needed:
                raise BadPair(f"has {length} bytes; its header demands {needed}{' unpacked' if is_compressed else ''}")
        return volume

    def turned(self, turn: Turn) -> Volume:
        """Return the volume with these axes as its sides. Raise BadPair if it has too many slices then."""
        volume = replace(self, turn=turn)
        if volume.slices > MOST_SLICES:
            raise BadPair(f"claims {volume.slices} slices; {MOST_SLICES} are read at most")
        return volume

    def like(self, first: Volume) -> Volume:
        """Return the volume with the sides of another: turned, if it is at the same place then."""
        return self.turned(axes_like(first.file_grid, self.file_grid).then(first.turn))

    @property
    def slices(self) -> int:
        return self.upright[0]

    @property
    def upright(self) -> tuple[int, int, int]:
        """The number of slices, and their height and width."""
        width, height, slices = self.turn.of(self.sides)
        return slices, height, width

    @property
    def grid(self) -> Grid | None:
        """The place of the voxels, in the order of column, row and slice."""
        return None if self.file_grid is None else turned(self.file_grid, self.turn)

    @property
    def size(self) -> int:
        """The bytes of all numbers."""
        return self._channel_size * self.channels

    @property
    def _channel_size(self) -> int:
        return self.dtype.itemsize * math.prod(self.sides)

    @property
    def is_read_whole(self) -> bool:
        """True if a slice is not one range of the file's bytes."""
        return self.is_compressed or self.turn.order[-1] != THIRD

    @property
    def is_in_order(self) -> bool:
        """True if the slices follow each other in the file."""
        return self.turn.order[-1] == THIRD and not self.turn.backwards[-1]

    @property
    def is_scaled(self) -> bool:
        """True if the numbers in the file are not the values. A slope of 0 means that there is none."""
        return self.slope != 0 and (self.slope, self.intercept) != (1, 0)

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The type of the values: float32 if they are scaled, because then they are not whole any more."""
        return np.dtype(np.float32) if self.is_scaled else self.dtype.newbyteorder("=")

    def all_bytes(self) -> bytearray:
        """Return the header and the numbers. Raise BadPair if their length or the checksum of gzip is wrong."""
        if self.size > MOST_BYTES:
            raise BadPair(f"has {self.size:,} bytes, and at most {MOST_BYTES:,} are read at once; {IN_PARTS}")
        every, end = bytearray(self.offset + self.size), 0
        for piece in self.pieces():
            every[end : end + len(piece)] = piece
            end += len(piece)
        return every

    def pieces(self) -> Iterator[bytes]:
        """Yield the header and the numbers, some at a time. Behind the last ones raise BadPair like `all_bytes`."""
        missing = self.offset + self.size
        with open_raw(self.path) as file:
            read = _unpacked if self.is_compressed else _read
            for piece in read(file, missing + 1):
                missing -= len(piece)
                if missing >= 0:
                    yield piece
        if missing:
            raise BadPair(f"{'unpacks to' if self.is_compressed else 'has'} another length than its header demands")

    def planes(self, channel: int = 0) -> Generator[NDArray[Any], None, None]:
        """Yield the numbers of a channel in the order of the file: a plane for each step along the third axis.

        Behind the last ones raise BadPair like `all_bytes`.
        """
        columns, rows, missing = self.sides
        start, size = self.offset + channel * self._channel_size, self.dtype.itemsize * rows * columns
        data = bytearray()
        for piece in self.pieces():
            data += piece
            skipped = min(start, len(data))
            del data[:skipped]
            start -= skipped
            while missing and len(data) >= size:
                yield np.frombuffer(data[:size], self.dtype).reshape(rows, columns)
                del data[:size]
                missing -= 1
            if not missing:
                data.clear()

    def numbers(self, number: int, whole: bytearray | None = None, channel: int = 0) -> NDArray[Any]:
        """Return the stored numbers (H,W) of a slice of a channel, from all bytes if these are given or needed."""
        start, size = self.offset + channel * self._channel_size, self._channel_size // self.slices
        if self.is_read_whole or whole is not None:
            every = np.frombuffer(whole or self.all_bytes(), self.dtype, math.prod(self.sides), start)
            cut: NDArray[Any] = self.turn.apply(every.reshape(self.sides[::-1]))[number]
            return cut
        with open_raw(self.path) as file:
            file.seek(start + (self.slices - 1 - number if self.turn.backwards[-1] else number) * size)
            raw = file.read(size)
        if len(raw) != size:
            raise BadPair("is cut short")
        return self.slice_of(np.frombuffer(raw, self.dtype).reshape(self.sides[1::-1]))

    def slice_of(self, plane: NDArray[Any]) -> NDArray[Any]:
        """Return a plane of the file as a slice, if the slices are planes."""
        turned_plane: NDArray[Any] = self.turn.apply(plane[None])[0]
        return turned_plane

    def values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the values of stored numbers."""
        if not self.is_scaled:
            return np.array(numbers, self.value_dtype, order="C")
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32 they are infinite, and clipped
            return (numbers * np.float64(self.slope) + np.float64(self.intercept)).astype(np.float32, order="C")


def _read(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the first bytes of a file, `most` at most."""
    while most and (piece := file.read(min(_UNPACKED, most))):
        most -= len(piece)
        yield piece


def _unpacked(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the first bytes that a gzip file unpacks to, `most` at most. It may have several parts.

    Refuse a file that takes longer than its content, such as one of a million empty parts.
    """
    total, unpacking = 0, zlib_ng.decompressobj(wbits=31)
    rest, parts = b"", 1
    while total < most:
        rest = rest or file.read(_PIECE)
        if not rest:
            break
        if unpacking.eof:
            unpacking = zlib_ng.decompressobj(wbits=31)
            parts += 1
        if file.tell() + parts * _PART > _SLACK + 2 * total:
            raise BadPair(f"has {file.tell()} bytes in {parts} parts that unpack to {total}; compress it again")
        try:
            piece = unpacking.decompress(rest, min(_UNPACKED, most - total))
        except zlib_ng.error as error:  # type: ignore[misc]  # its stub calls this class an instance
            raise BadPair(f"is damaged ({error})") from error
        rest = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
        total += len(piece)
        yield piece
    if total < most and not unpacking.eof:
        raise BadPair("is cut short")


def _facts(head: bytes) -> tuple[np.dtype[Any], tuple[int, int, int], int, float, float, int]:
    """Return type, sides, offset, slope, intercept, and the number of volumes."""
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
    if not 2 <= count <= 7 or min(sides_used[:count]) < 1 or math.prod(sides_used[3:count]) > MOST_BANDS:
        raise BadPair(
            f"has the sides {sides_used[: max(count, 0)]}; expected three, and up to {MOST_BANDS} volumes, which "
            "become bands"
        )
    columns, rows, slices = (*sides_used[:count], 1)[:3]
    dtype = np.dtype(order + _TYPES[code])
    if not (head_size := size + 4) <= offset < 1 << 30 or offset != int(offset):
        raise BadPair(f"has its numbers at {offset}; expected {head_size} or more")
    if not math.isfinite(slope) or slope == 0:
        slope, intercept = 0.0, 0.0
    if not math.isfinite(intercept):
        raise BadPair(f"has numbers that are scaled by {slope:g} plus {intercept}")
    return dtype, (columns, rows, slices), int(offset), slope, intercept, math.prod(sides_used[3:count])


def _grid(head: bytes, sides: tuple[int, int, int]) -> Grid | None:
    """Return where the voxels are: by the matrix of a header, called sform, and by its quaternion, called qform."""
    order = "<" if struct.unpack_from("<i", head)[0] in (348, 540) else ">"
    if struct.unpack_from(order + "i", head)[0] == 348:
        quaternion, matrix = struct.unpack_from(order + "hh", head, 252)
        spacing = struct.unpack_from(order + "4f", head, 76)
        rotated, rows = struct.unpack_from(order + "6f", head, 256), struct.unpack_from(order + "12f", head, 280)
    else:
        quaternion, matrix = struct.unpack_from(order + "ii", head, 344)
        spacing = struct.unpack_from(order + "4d", head, 104)
        rotated, rows = struct.unpack_from(order + "6d", head, 352), struct.unpack_from(order + "12d", head, 400)
    steps = tuple(abs(step) or 1.0 for step in spacing[1:4])  # nibabel reads the sides of a voxel so
    qform = _rotation(rotated, spacing[0], steps) if quaternion > 0 else ()
    forms = {"sform": rows if matrix > 0 else (), "qform": qform}
    usable_forms = tuple((name, rows) for name, rows in forms.items() if usable(rows, 3))
    assumed = _by_spacing(steps, sides) if max(matrix, quaternion) <= 0 else ()
    return Grid(sides, usable_forms, System(NIFTI), assumed) if usable_forms or assumed else None


def _by_spacing(spacing: Sequence[float], sides: tuple[int, int, int]) -> GridTransform:
    """Return the matrix that nibabel assumes of a header without one: the origin is the middle, and x goes to the left.

    The distance of voxels may be missing, too.
    """
    steps = (-spacing[0], spacing[1], spacing[2])
    rows = tuple(
        number
        for axis, (step, side) in enumerate(zip(steps, sides, strict=True))
        for number in (*(step * (axis == column) for column in range(3)), -step * (side - 1) / 2)
    )
    return rows if usable(rows, 3) else ()


def _rotation(rotated: Sequence[float], factor: float, spacing: Sequence[float]) -> GridTransform:
    """Return the matrix of a quaternion, whose first part follows from the others, an offset, and the sides of a voxel;
    nothing if it is none."""
    b, c, d, *offset = rotated
    rest = 1 - b * b - c * c - d * d
    if not rest > -1e-5:
        return ()
    a = math.sqrt(max(0.0, rest))
    steps = (spacing[0], spacing[1], -spacing[2] if factor < 0 else spacing[2])
    rows = (
        (a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)),
        (2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)),
        (2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c),
    )
    return tuple(
        number
        for row, start in zip(rows, offset, strict=True)
        for number in (*(part * step for part, step in zip(row, steps, strict=True)), start)
    )
