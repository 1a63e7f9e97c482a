"""`row_sheet`: rows of a pack on a sheet with their keys, in a fair draw or in the given order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from readers.contract.errors import RequestError
from readers.contract.manifest import ALL
from readers.permutation import Permutation, keys_of
from readers.pictures.sheet import MOST_ROWS, Cell, SheetGrid, draw_sheet
from readers.row_pictures import RowPictures

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Choice:
    """The rows of some splits. A sheet shows `n` of them in a fair draw, or the `picked` ones."""

    rows: Sequence[int]
    splits: Sequence[str]
    n: int
    seed: int
    picked: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.picked is None and not 1 <= self.n <= MOST_ROWS:
            raise RequestError(f"n={self.n!r}: a sheet shows 1 to {MOST_ROWS} rows")
        if not 1 <= len(self.shown) <= MOST_ROWS:
            raise RequestError(f"a sheet shows 1 to {MOST_ROWS} rows, not {len(self.shown)}")

    @cached_property
    def shown(self) -> Sequence[int]:
        """The rows on the sheet."""
        if self.picked is not None:
            return self.picked
        return [self.rows[number] for number in fair_draw(len(self.rows), self.n, self.seed)]

    @property
    def text(self) -> str:
        """The rows that are shown, and of how many."""
        drawn = f", drawn with seed {self.seed}" if len(self.shown) < len(self.rows) else ""
        how = drawn if self.picked is None else ", as asked for"
        splits = "all rows" if ALL in self.splits else ", ".join(self.splits)
        return f"{splits} · {len(self.shown):,} of {len(self.rows):,} rows{how}"


def row_sheet(pictures: RowPictures, title: str, choice: Choice) -> Image:
    """Return the sheet of these rows, with the legend of their splits."""
    rows, both = choice.shown, pictures.base is not None and pictures.over is not None
    grid = SheetGrid.of([pictures.size(row) for row in rows], 1 + both)
    cells = [_cell(pictures, row, grid) for row in rows]
    grid = replace(grid, noted=any(cell.note for cell in cells))
    facts = [choice.text, pictures.text, f"generation {pictures.pack.manifest.generation}"]
    return draw_sheet(title, " · ".join(facts), grid, cells, pictures.legend(choice.splits))


def fair_draw(count: int, most: int, seed: int) -> list[int]:
    """Return `most` of the numbers below `count` in order, each as likely as any other; they follow from the seed."""
    if count <= most:
        return list(range(count))
    drawn: list[int] = Permutation(count, keys_of("sheet", seed))(np.arange(most)).tolist()
    return sorted(drawn)


def _cell(pictures: RowPictures, row: int, grid: SheetGrid) -> Cell:
    """Return a row on the sheet. Rows that differ in size have theirs in the note."""
    size = pictures.size(row)
    drawn = pictures.draw(row, grid.fitted(size))
    native = pictures.size_text(row) if pictures.is_native else ""
    shown = [picture for picture in (drawn.picture, drawn.labelled) if picture is not None]
    return Cell(pictures.key(row), shown, " · ".join(filter(None, (native, drawn.note))))
