"""`Volume`: the header of a volume of any format, its axes as the sides of a row, and its slices."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.find_axes import axes_like
from packer.decoding.grid import Grid, turned
from packer.decoding.turn import UNTURNED, Turn
from packer.errors import BadPair
from packer.sources.file_states import FileState, state_of
from packer.sources.volumes.formats import read_volume
from packer.sources.volumes.volume_header import VolumeHeader
from packer.sources.volumes.voxels import Voxels
from readers.huge_pages import map_memory

THIRD = 2
"""The axis along which most scans have their slices, and along which a slice is stored in one piece."""
MOST_BYTES = 1 << 32
"""The most bytes that are read at once. A worker keeps them in memory, because the checksum of gzip comes last."""
IN_PARTS = "--volumes --encode image=tiles:64 --encode label=tiles:64 packs a volume in parts"
MOST_SLICES = 9_999
"""Their numbers have four digits in keys, so that they are sorted."""


@dataclass(frozen=True)
class Volume:
    """A header, and the numbers that it describes."""

    path: Path
    header: VolumeHeader
    voxels: Voxels
    turn: Turn = UNTURNED
    """The axes of the file as the column, the row and the slice of a row of the pack."""

    @classmethod
    def open(cls, path: Path) -> Volume:
        """Read a header. Raise BadPair if it is not one of a single volume of numbers."""
        header, voxels = read_volume(path)
        voxels.check(header.size)
        return cls(path, header, voxels)

    def turned(self, turn: Turn) -> Volume:
        """Return the volume with these axes as its sides. Raise BadPair if it has too many slices then."""
        volume = replace(self, turn=turn)
        if volume.slices > MOST_SLICES:
            raise BadPair(f"claims {volume.slices} slices; {MOST_SLICES} are read at most")
        return volume

    def like(self, first: Volume) -> Volume:
        """Return the volume with the sides of another: turned, if it is at the same place then."""
        return self.turned(axes_like(first.header.grid, self.header.grid).then(first.turn))

    def states(self) -> list[FileState]:
        """Return the states of all files of the volume now."""
        return [state_of(str(file)) for file in dict.fromkeys((self.path, *self.voxels.files))]

    @property
    def slices(self) -> int:
        return self.upright[0]

    @property
    def upright(self) -> tuple[int, int, int]:
        """The number of slices, and their height and width."""
        width, height, slices = self.turn.of(self.header.sides)
        return slices, height, width

    @property
    def grid(self) -> Grid | None:
        """The place of the voxels, in the order of column, row and slice."""
        return None if self.header.grid is None else turned(self.header.grid, self.turn)

    @property
    def is_read_whole(self) -> bool:
        """True if a slice is not one range of the file's bytes."""
        return self.voxels.is_packed or self.turn.order[-1] != THIRD

    @property
    def is_in_order(self) -> bool:
        """True if the slices follow each other in the file."""
        return self.turn.order[-1] == THIRD and not self.turn.backwards[-1]

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The type of the values: float32 if they are scaled, because then they are not whole any more."""
        return np.dtype(np.float32) if self.header.is_scaled else self.header.dtype.newbyteorder("=")

    def all_bytes(self) -> memoryview:
        """Return what is before the numbers, and the numbers. Raise BadPair if a length or a checksum is wrong."""
        size = self.header.size
        if size > MOST_BYTES:
            raise BadPair(f"has {size:,} bytes, and at most {MOST_BYTES:,} are read at once; {IN_PARTS}")
        length, end = self.voxels.offset + size, 0
        every = memoryview(map_memory(length))[:length]
        for piece in self.pieces():
            every[end : end + len(piece)] = piece
            end += len(piece)
        return every

    def pieces(self) -> Iterator[bytes]:
        """Yield these bytes, some at a time. Behind the last ones raise BadPair like `all_bytes`."""
        return self.voxels.pieces(self.header.size)

    def planes(self, channel: int = 0) -> Generator[NDArray[Any], None, None]:
        """Yield the numbers of a channel in the order of the file: a plane for each step along the third axis.

        Behind the last ones raise BadPair like `all_bytes`.
        """
        size, missing = self._plane_size, self.header.sides[2]
        start = self.voxels.offset + self._start_of(channel)
        data = bytearray()
        for piece in self.pieces():
            data += piece
            skipped = min(start, len(data))
            del data[:skipped]
            start -= skipped
            while missing and len(data) >= size:
                yield self._plane(bytes(data[:size]), channel)
                del data[:size]
                missing -= 1
            if not missing:
                data.clear()

    def numbers(self, number: int, whole: memoryview | None = None, channel: int = 0) -> NDArray[Any]:
        """Return the stored numbers (H,W) of a slice of a channel, from all bytes if these are given or needed."""
        if self.is_read_whole or whole is not None:
            cut: NDArray[Any] = self.turn.apply(self._channel(whole or self.all_bytes(), channel))[number]
            return cut
        plane = self.slices - 1 - number if self.turn.backwards[-1] else number
        raw = self.voxels.part(self._start_of(channel) + plane * self._plane_size, self._plane_size)
        return self.slice_of(self._plane(raw, channel))

    def slice_of(self, plane: NDArray[Any]) -> NDArray[Any]:
        """Return a plane of the file as a slice, if the slices are planes."""
        turned_plane: NDArray[Any] = self.turn.apply(plane[None])[0]
        return turned_plane

    def values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the values of stored numbers."""
        header = self.header
        if not header.is_scaled:
            return np.array(numbers, self.value_dtype, order="C")
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32 they are infinite, and clipped
            return (numbers * np.float64(header.slope) + np.float64(header.intercept)).astype(np.float32, order="C")

    @property
    def _plane_size(self) -> int:
        """The bytes of a plane, with all of its channels if they are next to each other."""
        columns, rows, _ = self.header.sides
        channels = self.header.channels if self.header.is_interleaved else 1
        return self.header.dtype.itemsize * rows * columns * channels

    def _start_of(self, channel: int) -> int:
        """Return the place of the first plane with a channel, behind the first number."""
        return 0 if self.header.is_interleaved else channel * self.header.sides[2] * self._plane_size

    def _plane(self, raw: bytes, channel: int) -> NDArray[Any]:
        """Return the numbers (rows, columns) of a channel in the bytes of a plane."""
        columns, rows, _ = self.header.sides
        numbers = np.frombuffer(raw, self.header.dtype)
        return numbers.reshape(rows, columns, -1)[..., channel if self.header.is_interleaved else 0]

    def _channel(self, every: memoryview, channel: int) -> NDArray[Any]:
        """Return the numbers (slices, rows, columns) of a channel in all bytes."""
        sides, start = self.header.sides, self.voxels.offset
        if self.header.is_interleaved:
            return np.frombuffer(every, self.header.dtype, offset=start).reshape(*sides[::-1], -1)[..., channel]
        start += self._start_of(channel)
        return np.frombuffer(every, self.header.dtype, math.prod(sides), start).reshape(sides[::-1])
