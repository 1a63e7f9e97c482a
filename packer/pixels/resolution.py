"""`Resolution`: the size of a map whose pixels get the side that `--resolution` says."""

from __future__ import annotations

from typing import NamedTuple

from packer.decoding.header import Header
from packer.decoding.rules import check_size
from packer.errors import BadPair
from readers.contract.place import GEO, Place
from readers.contract.tiles import Size

MOST_SIDE = 1 << 31


class Resolution(NamedTuple):
    """The side of a pixel in the units of its coordinates, and the most pixels of a picture."""

    side: float
    max_pixels: int

    def size_of(self, header: Header) -> Size:
        """Return the height and width of the picture with this header. Corners stay on corners, so its pixels have this
        side up to half a pixel in the whole picture."""
        place = _place_of(header)
        if place is None:
            raise BadPair(f"has no place on a map in its header, so --resolution {self} cannot scale it")
        sides = [side * old / self.side for side, old in zip(header.size, place.spacing, strict=True)]
        spacing = " x ".join(f"{step:.6g}" for step in place.spacing)
        if not max(sides) < MOST_SIDE or min(sides) < 0.5:
            raise BadPair(
                f"has pixels of {spacing} units of {place.crs or 'its coordinates'}, and --resolution {self} is in the "
                "same units, mostly metres or degrees: choose another"
            )
        height, width = max(1, round(sides[0])), max(1, round(sides[1]))
        check_size(height, width, header.channels, self.max_pixels, f"with --resolution {self} has")
        return height, width

    def __str__(self) -> str:
        return repr(self.side).removesuffix(".0")


def scaled_place(place: Place, source: Size, scaled: Size) -> Place:
    """Return the place of a picture that was scaled."""
    return place.part((0, 0), [old / new for old, new in zip(source, scaled, strict=True)])


def _place_of(header: Header) -> Place | None:
    grid = header.grid
    if grid is None or not grid.transform or grid.system.kind != GEO:
        return None
    return Place(grid.system, grid.transform)
