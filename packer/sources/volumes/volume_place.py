"""The places of a NIfTI volume and of its slices, in the order of their stored sides."""

from __future__ import annotations

import numpy as np

from packer.sources.volumes.nifti_volume import Volume
from readers.contract.place import Place


def volume_place(volume: Volume) -> Place | None:
    """Return the place of a volume: (column, row, slice) to x, y and z in mm. None if the header does not say it."""
    if volume.grid is None or not volume.grid.transform:
        return None
    columns = [*(axis for axis in range(3) if axis != volume.axis), volume.axis, 3]
    moved = np.reshape(volume.grid.transform, (3, 4))[:, columns]
    return Place(volume.grid.system, tuple(moved.ravel().tolist()))


def slice_place(volume: Volume, number: int) -> Place | None:
    """Return the place of a slice: (column, row) to x, y and z."""
    place = volume_place(volume)
    if place is None:
        return None
    matrix = place.matrix
    matrix[:, 3] += matrix[:, 2] * number
    return Place(place.system, tuple(matrix[:, [0, 1, 3]].ravel().tolist()))
