"""`Scan`: the channels of a case as one volume: a file for each channel, or one file with several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.grid import Grid, other_place
from packer.decoding.header import FilePixels, Header, Strip
from packer.errors import BadPair
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_scaling import VolumeScaling
from readers.contract.kinds import MOST_BANDS
from readers.contract.tiles import size_text


@dataclass(frozen=True)
class Scan:
    """Volumes of one size at one place. A volume with one channel is a scan, too."""

    volumes: tuple[Volume, ...]
    names: tuple[str, ...] = ()
    """The names of the channels; empty if nothing names them all."""
    elsewhere: str = ""
    """The words for a channel at another place than the first."""
    notes: tuple[str, ...] = ()
    """The files that are turned to the axes of another, in words."""
    scaling: VolumeScaling | None = None
    """The way to the stored size, if it is not the size of the files."""

    @classmethod
    def of(cls, paths: Sequence[str], volumes: Sequence[Volume], names: tuple[str, ...] = ()) -> Scan:
        """Put the files of a case together. Raise BadPair if they do not have one size."""
        first, elsewhere = volumes[0], ""
        for path, volume in zip(paths, volumes, strict=True):
            if volume.upright != first.upright:
                sizes = f"{size_text(first.upright)}, and {path} has {size_text(volume.upright)}"
                raise BadPair(f"{paths[0]} has the sides {sizes}; the channels of a case have one size")
            elsewhere = elsewhere or other_place(paths[0], first.grid, path, volume.grid, "channel")
        channels = sum(volume.header.channels for volume in volumes)
        if channels > MOST_BANDS:
            raise BadPair(f"has {channels} channels; at most {MOST_BANDS} are packed as bands")
        return cls(tuple(volumes), names if len(names) == channels else (), elsewhere)

    @property
    def channels(self) -> int:
        return sum(volume.header.channels for volume in self.volumes)

    @property
    def slices(self) -> int:
        return self.upright[0]

    @property
    def upright(self) -> tuple[int, int, int]:
        """The number of stored slices, and their height and width."""
        return self.volumes[0].upright if self.scaling is None else self.scaling.size

    @property
    def grid(self) -> Grid | None:
        return self.volumes[0].grid

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The type that has the values of all channels."""
        return np.result_type(*(volume.value_dtype for volume in self.volumes))

    def header(self, slices: int | None = None) -> Header:
        """Return the header of the scan, or of one of its slices."""
        _, height, width = self.upright
        dtype, channels = self.value_dtype, self.channels
        return Header(
            self.volumes[0].header.kind,
            width,
            height,
            8 * dtype.itemsize,
            channels,
            is_float=dtype.kind == "f",
            is_signed=dtype.kind == "i",
            extra=channels - 1,
            slices=slices,
            grid=self.grid,
            band_names=self.names if channels > 1 else (),
            elsewhere=self.elsewhere,
        )

    def picture(self, planes: Sequence[NDArray[Any]]) -> NDArray[Any] | Strip:
        """Return a slice made of the values of each channel."""
        if len(planes) == 1:
            return planes[0]
        numbers = np.stack([plane.astype(self.value_dtype, copy=False) for plane in planes])
        return Strip(self.header(), FilePixels(numbers.transpose(1, 2, 0)))

    def slice(self, number: int, wholes: Sequence[memoryview | None]) -> NDArray[Any] | Strip:
        """Return a slice. `wholes` has all bytes of each file that is not read in parts."""
        sources = [
            partial(_plane, volume, whole, channel)
            for volume, whole in zip(self.volumes, wholes, strict=True)
            for channel in range(volume.header.channels)
        ]
        return self.picture([self.scaled(source, number) for source in sources])

    def scaled(self, source: Callable[[int], NDArray[Any]], number: int) -> NDArray[Any]:
        """Return the values of a stored slice of a channel, whose slices in the file `source` returns."""
        return source(number) if self.scaling is None else self.scaling.slice(source, number)


def _plane(volume: Volume, whole: memoryview | None, channel: int, number: int) -> NDArray[Any]:
    return volume.values(volume.numbers(number, whole, channel))
