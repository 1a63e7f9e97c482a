"""The places of a volume and of its slices, in the order of their stored sides."""

from __future__ import annotations

from packer.sources.volumes.scan import Scan
from packer.sources.volumes.volume import Volume
from readers.contract.place import Place


def place_of_file(volume: Volume) -> Place | None:
    """Return the place of a turned volume in its file: (column, row, slice) to x, y and z in mm.

    None if the header does not say it.
    """
    grid = volume.grid
    return None if grid is None or not grid.transform else Place(grid.system, grid.transform)


def volume_place(scan: Scan) -> Place | None:
    """Return the place of the volume that is stored."""
    place, scaling = place_of_file(scan.volumes[0]), scan.scaling
    if place is None or scaling is None:
        return place
    steps = [source / side for source, side in zip(scaling.source, scaling.size, strict=True)]
    return place.part((0, 0, 0), steps)


def slice_place(scan: Scan, number: int) -> Place | None:
    """Return the place of a slice: (column, row) to x, y and z."""
    place = volume_place(scan)
    if place is None:
        return None
    matrix = place.matrix
    matrix[:, 3] += matrix[:, 2] * number
    return Place(place.system, tuple(matrix[:, [0, 1, 3]].ravel().tolist()))
