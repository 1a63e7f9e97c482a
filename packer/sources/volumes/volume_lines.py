"""`VolumeLines`: the slices of a volume that is too large for memory, read in order."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.header import Strip
from packer.errors import BadPair, LostFile
from packer.recipe.source import Slices
from packer.sources.file_states import FileState
from packer.sources.volumes import volume as limits
from packer.sources.volumes.scan import Scan
from packer.sources.volumes.volume import THIRD, Volume
from packer.sources.volumes.volume_scaling import VolumeScaling
from readers.contract.fields import Field
from readers.contract.tiles import Size

Checked = Callable[[NDArray[Any]], NDArray[Any]]


class VolumeLines:
    """Reads slice by slice if slices follow each other in the files, or can be read alone. Along another axis each
    strip takes its part of all planes, so the files are read, and unpacked, once for each strip."""

    def __init__(self, scan: Scan, name: str, checked: Checked | None = None) -> None:
        """`checked` takes the values of a slice, and returns the stored ones."""
        self._scan, self._name, self._checked = scan, name, checked
        self._states = self._states_now()
        self._channels = [(volume, channel) for volume in scan.volumes for channel in range(volume.header.channels)]
        self._planes = [volume.planes(channel) for volume, channel in self._channels]
        self._held: dict[int, list[NDArray[Any]]] = {}
        """The slices of the files that the next scaled slices need, with the values of each channel."""
        self._read = 0

    @property
    def size(self) -> Size:
        return self._scan.upright

    def lines(self, top: int, bottom: int) -> Slices:
        """Return the next slices, to be taken in order. With the last one of all a file that changed is refused."""
        scaling = self._scan.scaling
        first, end = (top, bottom) if scaling is None else (scaling.end(top), scaling.end(bottom))
        sources = [self._numbers(channel, first, end) for channel in range(len(self._channels))]

        def in_file(number: int) -> list[NDArray[Any]]:
            pairs = zip(self._channels, sources, strict=True)
            return [volume.values(numbers(number - first)) for (volume, _), numbers in pairs]

        def values(number: int) -> Any:
            planes = in_file(top + number) if scaling is None else self._scaled(scaling, in_file, top + number)
            picture = self._scan.picture(planes)
            if top + number == self.size[0] - 1:
                self._check_end()
            return picture if self._checked is None or isinstance(picture, Strip) else self._checked(picture)

        return Slices((bottom - top, *self.size[1:]), values, self._name, top)

    def _scaled(
        self, scaling: VolumeScaling, in_file: Callable[[int], list[NDArray[Any]]], number: int
    ) -> list[NDArray[Any]]:
        """Return the channels of a scaled slice. Slices of the files are read in order, each once."""
        needed = scaling.slices(number)
        for source in range(self._read, scaling.end(number + 1)):
            self._held[source] = in_file(source)
        self._read = max(self._read, scaling.end(number + 1))
        self._held = {source: planes for source, planes in self._held.items() if source >= needed[0]}
        return [scaling.slice(partial(self._held_slice, channel), number) for channel in range(len(self._channels))]

    def _held_slice(self, channel: int, source: int) -> NDArray[Any]:
        return self._held[source][channel]

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
        sides = bottom - top, *volume.upright[1:]
        size = volume.header.dtype.itemsize * math.prod(sides) * len(self._channels)
        if size > limits.MOST_BYTES:
            raise BadPair(f"has {size:,} bytes in {bottom - top} slices; take tiles of less depth")
        numbers, axis = np.empty(sides, volume.header.dtype), volume.turn.order[-1]
        in_file = volume.turn.inverse.apply(numbers)
        taken = slice(volume.slices - bottom, volume.slices - top) if volume.turn.backwards[-1] else slice(top, bottom)
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
        return [state for volume in self._scan.volumes for state in volume.states()]

    def stored(self, field: Field) -> None:
        return None

    def close(self) -> None:
        for planes in self._planes:
            planes.close()
