"""Find where the pixels of a stored row are in the world, by the header of its picture and what is done to its size."""

from __future__ import annotations

from packer.decoding.header import Header
from packer.pixels.placement import Placement
from readers.contract.place import Place


def place_of(header: Header) -> Place | None:
    """Return the place of the upright picture with this header; None if the header does not say it."""
    grid = header.grid
    if grid is None or not grid.transform:
        return None
    return Place(grid.system, grid.transform, header.no_data)


def stored_place(picture: Place, placement: Placement) -> Place:
    """Return the place of a row whose picture has this place."""
    spans = zip(placement.source, placement.scaled, placement.taken, placement.region, strict=True)
    start, step = [], []
    for source, scaled, taken, region in spans:
        step.append(source / scaled)
        start.append((taken.start - region.start) * source / scaled)
    return picture.part(start, step) if start != [0, 0] or step != [1, 1] else picture
