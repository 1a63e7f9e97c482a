"""`NiftiLines`: the slices of a NIfTI volume that is too large for memory, read in order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.header import Strip
from packer.errors import BadPair, LostFile
from packer.recipe.source import Slices
from packer.sources.file_states import FileState, state_of
from packer.sources.volumes import nifti_volume
from packer.sources.volumes.nifti_volume import THIRD, Volume
from packer.sources.volumes.scan import Scan
from readers.contract.fields import Field
from readers.contract.tiles import Size

Checked = Callable[[NDArray[Any]], NDArray[Any]]


class NiftiLines:
    """Reads slice by slice if slices follow each other in the files, or can be read alone. Along another axis each
    strip takes its part of all planes, so the files are read, and unpacked, once for each strip."""

    def __init__(self, scan: Scan, name: str, checked: Checked | None = None) -> None:
        """`checked` takes the values of a slice, and returns the stored ones."""
        self._scan, self._name, self._checked = scan, name, checked
        self._states = self._states_now()
        self._channels = [(volume, channel) for volume in scan.volumes for channel in range(volume.channels)]
        self._planes = [volume.planes(channel) for volume, channel in self._channels]

    @property
    def size(self) -> Size:
        return self._scan.upright

    def lines(self, top: int, bottom: int) -> Slices:
        """Return the next slices, to be taken in order. With the last one of all a file that changed is refused."""
        sources = [self._numbers(channel, top, bottom) for channel in range(len(self._channels))]

        def values(number: int) -> Any:
            pairs = zip(self._channels, sources, strict=True)
            picture = self._scan.picture([volume.values(numbers(number)) for (volume, _), numbers in pairs])
            if top + number == self.size[0] - 1:
                self._check_end()
            return picture if self._checked is None or isinstance(picture, Strip) else self._checked(picture)

        return Slices((bottom - top, *self.size[1:]), values, self._name, top)

    def _numbers(self, number: int, top: int, bottom: int) -> Callable[[int], NDArray[Any]]:
        """Return what gives the numbers of the next slices of a channel."""
        volume, channel = self._channels[number]
        if volume.is_in_order:
            return lambda _: volume.slice_of(next(self._planes[number]))
        if not volume.is_read_whole:
            return lambda index: volume.numbers(top + index, channel=channel)
        slab = self._slab(volume, channel, top, bottom)
        return lambda index: slab[index]

    def _slab(self, volume: Volume, channel: int, top: int, bottom: int) -> NDArray[Any]:
        """Return the numbers of slices that are not one plane of the file after the other."""
        sides = bottom - top, *self.size[1:]
        size = volume.dtype.itemsize * math.prod(sides) * len(self._channels)
        if size > nifti_volume.MOST_BYTES:
            raise BadPair(f"has {size:,} bytes in {bottom - top} slices; take tiles of less depth")
        numbers, axis = np.empty(sides, volume.dtype), volume.turn.order[-1]
        in_file = volume.turn.inverse.apply(numbers)
        taken = slice(self.size[0] - bottom, self.size[0] - top) if volume.turn.backwards[-1] else slice(top, bottom)
        for number, plane in enumerate(volume.planes(channel)):
            if axis != THIRD:
                in_file[number] = plane[taken] if axis else plane[:, taken]
            elif taken.start <= number < taken.stop:
                in_file[number - taken.start] = plane
        return numbers

    def _check_end(self) -> None:
        """Refuse files that go on, or are not what they were when this was made."""
        for (volume, _), planes in zip(self._channels, self._planes, strict=True):
            for _ in planes if volume.is_in_order else ():
                pass
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Refuse files that are not what they were when this was made."""
        if self._states_now() != self._states:
            raise LostFile("changed while it was read; build again")

    def _states_now(self) -> list[FileState]:
        return [state_of(str(volume.path)) for volume in self._scan.volumes]

    def stored(self, field: Field) -> None:
        return None

    def close(self) -> None:
        for planes in self._planes:
            planes.close()
