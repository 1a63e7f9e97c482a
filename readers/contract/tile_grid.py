"""`TileGrid`: the tiles that a row is stored in, and where they are in the row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

Area: TypeAlias = tuple[slice, ...]
"""A part of a row: from where to where on each of its sides."""
Index: TypeAlias = tuple[Any, ...]
"""A part as an index of arrays, whose last axes are the sides."""
ALIGNED = 64
"""A tile begins at a multiple of this number of bytes of its row."""
END_BYTES = 8
"""The size of a number of the table, the end of a tile."""


@dataclass(frozen=True)
class TileGrid:
    """The tiles of a row, counted along its last side first. At the end of a side they have what is left of it."""

    sides: tuple[int, ...]
    """The sides of the row."""
    tile: tuple[int, ...]
    """The sides of a tile."""

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of tiles on each side."""
        return tuple(-(-side // length) for side, length in zip(self.sides, self.tile, strict=True))

    @cached_property
    def count(self) -> int:
        """The number of tiles of the row."""
        return math.prod(self.counts)

    @property
    def table_bytes(self) -> int:
        """The bytes of the table before the tiles."""
        return END_BYTES * self.count

    @property
    def strips(self) -> Iterator[slice]:
        """The parts of the first side that are as long as a tile. A strip has all tiles of such a part."""
        return (area[0] for area in TileGrid(self.sides[:1], self.tile[:1]).areas)

    @property
    def areas(self) -> Iterator[Area]:
        """The part of the row that each tile is."""
        return (area for _, area in self.touched(self.whole))

    @property
    def whole(self) -> Area:
        """The whole row as a part of it."""
        return tuple(slice(0, side) for side in self.sides)

    def touched(self, part: Area) -> Iterator[tuple[int, Area]]:
        """Yield the number of each tile that has pixels of a part, and the part of the row that the tile is."""
        if any(cut.start >= cut.stop for cut in part):
            return
        cuts = zip(part, self.tile, strict=True)
        for indices in itertools.product(*(range(cut.start // t, -(-cut.stop // t)) for cut, t in cuts)):
            number = 0
            for index, count in zip(indices, self.counts, strict=True):
                number = number * count + index
            along = zip(indices, self.tile, self.sides, strict=True)
            yield number, tuple(slice(index * t, min(side, index * t + t)) for index, t, side in along)


def index_of(part: Area) -> Index:
    """Return a part as an index of a row, whatever axes come before its sides."""
    return (..., *part)


def common(part: Area, area: Area) -> tuple[Index, Index]:
    """Return what two parts that overlap have in common: as an index of the first, and as one of the second."""
    pairs = zip(part, area, strict=True)
    both = [(max(cut.start, other.start), min(cut.stop, other.stop)) for cut, other in pairs]
    first, second = (
        index_of(
            tuple(slice(start - cut.start, stop - cut.start) for (start, stop), cut in zip(both, cuts, strict=True))
        )
        for cuts in (part, area)
    )
    return first, second


def shape_of(part: Area) -> tuple[int, ...]:
    """Return the sides of a part."""
    return tuple(cut.stop - cut.start for cut in part)


def aligned(position: int) -> int:
    """Return where the tile begins that follows after this position of a row."""
    return -(-position // ALIGNED) * ALIGNED
