"""`NiftiLines`: the slices of a NIfTI volume that is too large for memory, read in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair, LostFile
from packer.recipe.source import Slices
from packer.sources.file_states import state_of
from packer.sources.volumes import nifti_volume
from packer.sources.volumes.nifti_volume import THIRD, Volume
from readers.contract.fields import Field
from readers.contract.tiles import Size

Checked = Callable[[NDArray[Any]], NDArray[Any]]


class NiftiLines:
    """Reads slice by slice if slices lie one after the other in the file. Along another axis each strip takes its part
    of all planes, so the file is read, and unpacked, once for each strip."""

    def __init__(self, volume: Volume, name: str, checked: Checked | None = None) -> None:
        """`checked` takes the values of a slice, and returns those that are stored."""
        self._volume, self._name, self._checked = volume, name, checked
        self._state = state_of(str(volume.path))
        self._planes = volume.planes()

    @property
    def size(self) -> Size:
        return self._volume.upright

    def lines(self, top: int, bottom: int) -> Slices:
        """Return the next slices, to be taken in order. With the last one of all a file that changed is refused."""
        numbers = None if self._volume.axis == THIRD else self._slab(top, bottom)

        def values(number: int) -> NDArray[Any]:
            plane = self._volume.values(next(self._planes) if numbers is None else numbers[number])
            if top + number == self.size[0] - 1:
                self._check_end()
            return plane if self._checked is None else self._checked(plane)

        return Slices((bottom - top, *self.size[1:]), values, self._name, top)

    def _slab(self, top: int, bottom: int) -> NDArray[Any]:
        """Return the numbers of slices that lie across the planes of the file."""
        size = self._volume.size // self.size[0] * (bottom - top)
        if size > nifti_volume.MOST_BYTES:
            raise BadPair(f"has {size:,} bytes in {bottom - top} slices; take tiles of less depth")
        numbers = np.empty((bottom - top, *self.size[1:]), self._volume.dtype)
        for number, plane in enumerate(self._volume.planes()):
            numbers[:, number] = np.moveaxis(plane, 1 - self._volume.axis, 0)[top:bottom]
        return numbers

    def _check_end(self) -> None:
        """Refuse a file that goes on, or is not what it was when this was made."""
        for _ in self._planes if self._volume.axis == THIRD else ():
            pass
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when this was made."""
        if state_of(str(self._volume.path)) != self._state:
            raise LostFile("changed while it was read; build again")

    def stored(self, field: Field) -> None:
        return None

    def close(self) -> None:
        self._planes.close()
