"""Find where the pixels of a stored row are in the world, by the header of its picture and what is done to its size."""

from __future__ import annotations

from packer.decoding.header import Header
from packer.pixels.placement import Placement
from readers.contract.place import GEO, Place

_TURNED = {
    2: ((-1, 0, 1, 0), (0, 1, 0, 0)),
    3: ((-1, 0, 1, 0), (0, -1, 0, 1)),
    4: ((1, 0, 0, 0), (0, -1, 0, 1)),
    5: ((0, 1, 0, 0), (1, 0, 0, 0)),
    6: ((0, 1, 0, 0), (-1, 0, 0, 1)),
    7: ((0, -1, 1, 0), (-1, 0, 0, 1)),
    8: ((0, -1, 1, 0), (1, 0, 0, 0)),
}
"""For each orientation of EXIF the column and the row of the file: by the upright column and row, and the file's width
and height to add."""


def place_of(header: Header) -> Place | None:
    """Return the place of the upright picture with this header; None if the header does not say it."""
    grid = header.grid
    if grid is None or not grid.transform:
        return None
    place = Place(grid.system, grid.transform, header.no_data)
    return _upright(place, header) if header.orientation in _TURNED and place.kind == GEO else place


def stored_place(picture: Place, placement: Placement) -> Place:
    """Return the place of a row whose picture has this place."""
    spans = zip(placement.source, placement.scaled, placement.taken, placement.region, strict=True)
    start, step = [], []
    for source, scaled, taken, region in spans:
        step.append(source / scaled)
        start.append((taken.start - region.start) * source / scaled)
    return picture.part(start, step) if start != [0, 0] or step != [1, 1] else picture


def _upright(place: Place, header: Header) -> Place:
    """Return the place of a picture that is turned as its orientation says."""
    lines = []
    width, height = header.stored_width, header.stored_height
    column, row = _TURNED[header.orientation]
    for a, b, offset in place.matrix.tolist():
        lines.append(a * column[0] + b * row[0])
        lines.append(a * column[1] + b * row[1])
        lines.append(offset + a * (column[2] * width + column[3] * height) + b * (row[2] * width + row[3] * height))
    return Place(place.system, tuple(lines), place.no_data)
