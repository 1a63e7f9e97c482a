"""`Sheet`: many drawn rows in a grid with their keys, and a legend below."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from readers.pictures.draw import Picture
from readers.pictures.legend import INK, SOFT, Legend
from readers.pictures.shrink import ShownSize, fitted
from readers.pictures.text import cut_to, write

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

WIDTH, MARGIN, GAP, SEAM = 1600, 36, 18, 2
"""The greatest width, and the space around everything, between cells, and between a picture and its overlay."""
MOST_ROWS = 600
"""The most rows that a sheet shows."""
LEAST, MOST = 72, 420
"""The least and the most width of a cell; the most is also the most height of a picture."""
WIDE = 1.5
"""Pictures that are so much wider than high have their overlay below and not at their side."""
SHAPE = 0.72
"""The height of a sheet by its width that the grid aims at."""
KEY, NOTE, TITLE, SUBTITLE = 12, 11, 24, 14
GROUND, EMPTY = (250, 250, 248), (240, 240, 237)


@dataclass(frozen=True)
class Cell:
    """A row of a sheet: its pictures next to each other, its key, and a note."""

    key: str
    pictures: Sequence[Picture]
    note: str = ""


@dataclass(frozen=True)
class SheetGrid:
    """The columns and lines of cells, the box of each picture, and whether the pictures of a cell are stacked."""

    columns: int
    lines: int
    box: ShownSize
    count: int
    stacked: bool
    noted: bool

    @classmethod
    def of(cls, sizes: Sequence[ShownSize], count: int = 1, noted: bool = False) -> SheetGrid:
        """Return the grid of rows of these sizes, `count` pictures for each. It is about as wide as a screen."""
        shape = min(max(statistics.median(width / height for height, width in sizes), 1 / 3), 3)
        grids = [cls._with(columns, sizes, shape, count, noted) for columns in range(1, min(len(sizes), 24) + 1)]
        wide = [grid for grid in grids if grid.cell[1] >= LEAST] or grids[:1]
        return min(wide, key=lambda grid: grid.fault(len(sizes)))

    @classmethod
    def _with(cls, columns: int, sizes: Sequence[ShownSize], shape: float, count: int, noted: bool) -> SheetGrid:
        stacked = shape >= WIDE
        cell = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) // columns
        across = 1 if stacked else count
        width = min((cell - (across - 1) * SEAM) // across, MOST, round(MOST * shape))
        shown = [fitted(size, (max(1, round(width / shape)), max(1, width))) for size in {*sizes}]
        box = max(height for height, _ in shown), max(min(LEAST, width), *(width for _, width in shown))
        return cls(columns, -(-len(sizes) // columns), box, count, stacked, noted)

    def fault(self, rows: int) -> float:
        """Return how far the grid is from the shape of a screen without empty cells."""
        return abs(self.size[0] / self.size[1] - SHAPE) + (1 - rows / (self.columns * self.lines))

    @property
    def cell(self) -> ShownSize:
        """The height and width of a cell, with its key."""
        high, wide = (self.count, 1) if self.stacked else (1, self.count)
        text = KEY + 8 + (NOTE + 5) * self.noted
        return high * self.box[0] + (high - 1) * SEAM + text, wide * self.box[1] + (wide - 1) * SEAM

    @property
    def size(self) -> ShownSize:
        """The height and width of all cells."""
        height, width = self.cell
        return self.lines * height + (self.lines - 1) * GAP, self.columns * width + (self.columns - 1) * GAP

    def fitted(self, size: ShownSize) -> ShownSize:
        """Return the size at which a picture is drawn."""
        return fitted(size, self.box)


def draw_sheet(title: str, subtitle: str, grid: SheetGrid, cells: Sequence[Cell], legend: Legend) -> Image:
    """Return the sheet as an image of Pillow."""
    from PIL import ImageDraw
    from PIL.Image import new

    width = max(grid.size[1], 480)
    head = TITLE + SUBTITLE + 30
    below = legend.height(width)
    height = MARGIN + head + grid.size[0] + (GAP + below if below else 0) + MARGIN
    image = new("RGB", (width + 2 * MARGIN, height), GROUND)
    draw = ImageDraw.Draw(image)
    write(draw, (MARGIN, MARGIN + TITLE - 4), cut_to(title, width, TITLE), TITLE, INK)
    write(draw, (MARGIN, MARGIN + TITLE + SUBTITLE + 8), cut_to(subtitle, width, SUBTITLE), SUBTITLE, SOFT)
    for number, cell in enumerate(cells):
        line, column = divmod(number, grid.columns)
        left = MARGIN + column * (grid.cell[1] + GAP)
        _draw_cell(image, draw, grid, cell, (left, MARGIN + head + line * (grid.cell[0] + GAP)))
    legend.draw(image, draw, MARGIN, MARGIN + head + grid.size[0] + GAP + 8, width)
    return image


def _draw_cell(image: Image, draw: ImageDraw, grid: SheetGrid, cell: Cell, at: tuple[int, int]) -> None:
    from PIL.Image import fromarray

    (left, top), (high, wide) = at, grid.box
    for number in range(grid.count):
        x, y = (left, top + number * (high + SEAM)) if grid.stacked else (left + number * (wide + SEAM), top)
        draw.rectangle((x, y, x + wide - 1, y + high - 1), fill=EMPTY)
        if number < len(cell.pictures):
            height, width = cell.pictures[number].shape[:2]
            image.paste(fromarray(cell.pictures[number]), (x + (wide - width) // 2, y + (high - height) // 2))
    foot = top + grid.cell[0] - (NOTE + 5) * grid.noted
    write(draw, (left, foot - 4), cut_to(cell.key, grid.cell[1], KEY), KEY, INK)
    if cell.note:
        write(draw, (left, foot + NOTE - 1), cut_to(cell.note, grid.cell[1], NOTE), NOTE, SOFT)
