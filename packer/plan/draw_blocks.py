"""Draw the splits of tiles by blocks of their pictures: a picture becomes a row of each split that has a tile of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError, UsageError
from packer.pairs.split_rule import SplitDraw
from packer.pixels.resize import Geometry
from packer.plan.block_rule import BlockRule
from packer.plan.check_heads import CheckedHeads
from packer.plan.found_rows import FoundRows
from packer.recipe.blocks import NEITHER
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef


@dataclass(frozen=True)
class DrawnRows:
    """The rows of each split, and the number that each had before."""

    found_rows: FoundRows
    numbers: NDArray[np.intp]


class BlockDraw:
    """Draws the splits of one picture after the other, and counts its tiles."""

    def __init__(self, rule: BlockRule, geometry: Geometry) -> None:
        self._shares, self._blocks, self._geometry = rule.shares, rule.blocks, geometry
        self._draw = SplitDraw(rule.shares)
        self.tiles, self.left_out = Counter[str](), 0
        """The tiles of each split, and the number of those that are in none."""

    def splits(self, ref: RowRef, size: tuple[int, ...]) -> Iterator[str]:
        """Yield the splits that have a tile of a picture: at least one, as its first tile is within its first block.

        A bad picture, which has no size, is in one.
        """
        if not self._draw.draws(ref.split, f"the row {ref.key!r}"):
            yield ref.split
        elif not size[0]:
            yield self._shares.split_of(ref.key)
        else:
            numbers = self._blocks.of_tiles(ref.key, size, self._geometry)
            self.left_out += int((numbers == NEITHER).sum())
            for number, name in enumerate(self._blocks.names):
                count = int((numbers == number).sum())
                self.tiles[name] += count
                if count:
                    yield name

    def notes(self) -> Iterator[str]:
        """Yield what became of the tiles."""
        if self.left_out:
            tiles = f"{self.left_out:,} of {self.left_out + sum(self.tiles.values()):,} tiles"
            yield f"{tiles} are left out: they touch blocks of two splits, or their margins do"
        yield from (note.replace(" pairs,", " tiles,") for note in self._shares.notes(self.tiles))

    def check(self) -> None:
        """Raise InputError if a split that needs tiles has none."""
        if problems := list(self._shares.problems(self.tiles, ())):
            raise InputError("--split-blocks: there are too few blocks; take smaller ones", problems)


def draw_blocks(found_rows: FoundRows, heads: CheckedHeads, rule: BlockRule, geometry: Geometry) -> DrawnRows:
    """Return the rows with their splits. Raise InputError if the rows have other splits, or a split has no tile."""
    if found_rows.source.keeps_splits:
        raise UsageError("--split-blocks: rows of functions have the splits that their keys name; leave it out")
    draw, rows = BlockDraw(rule, geometry), list[tuple[RowRef, int]]()
    for number, (ref, size) in enumerate(zip(found_rows.refs, heads.sizes.tolist(), strict=True)):
        rows += [(ref._replace(split=split), number) for split in draw.splits(ref, tuple(size))]
    draw.check()
    rows.sort()
    notes = (*found_rows.notes, *draw.notes())
    found_rows = replace(found_rows, refs=RefTable.of(ref for ref, _ in rows), notes=notes)
    return DrawnRows(found_rows, np.array([number for _, number in rows], np.intp))
