"""The places of a NIfTI volume and of its slices, in the order of their stored sides."""

from __future__ import annotations

from packer.sources.volumes.nifti_volume import Volume
from readers.contract.place import Place


def volume_place(volume: Volume) -> Place | None:
    """Return the place of a volume: (column, row, slice) to x, y and z in mm. None if the header does not say it."""
    grid = volume.grid
    return None if grid is None or not grid.transform else Place(grid.system, grid.transform)


def slice_place(volume: Volume, number: int) -> Place | None:
    """Return the place of a slice: (column, row) to x, y and z."""
    place = volume_place(volume)
    if place is None:
        return None
    matrix = place.matrix
    matrix[:, 3] += matrix[:, 2] * number
    return Place(place.system, tuple(matrix[:, [0, 1, 3]].ravel().tolist()))
