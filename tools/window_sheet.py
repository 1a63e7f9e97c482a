"""Draw eight rows of a pack, and below each the window that a loader delivers of it, with the outlines of its label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from readers import Colour, RandomCrop, SegDataset
from readers.crop import CropAndFlip
from readers.epoch import Run
from readers.pictures.draw import Look, draw
from readers.pictures.legend import Legend
from readers.pictures.overlay import overlay
from readers.pictures.sheet import Cell, SheetGrid, draw_sheet
from readers.windows import BatchWindows

ROWS, COLUMNS, BOX, SEED = 8, 4, (160, 240), 5
CROP = RandomCrop((160, 160), scale=(0.6, 1.8))
COLOUR = Colour(brightness=0.4, contrast=0.4, saturation=0.6, channels=0.15)
FRAME = (255, 255, 255)
CALL = "crop=RandomCrop((160, 160), scale=(0.6, 1.8)), flip=True, colour=Colour(0.4, 0.4, 0.6, channels=0.15)"


def window_sheet(data: SegDataset) -> Image.Image:
    """Return the sheet. The data set has labels as index."""
    rows = np.linspace(0, len(data) - 1, ROWS).astype(np.int64)
    sizes = np.array([data.size(row) for row in rows.tolist()])
    loader = data.loader(len(data), seed=SEED, crop=CROP, flip=True, colour=COLOUR, output="numpy")
    images, labels = next(iter(loader))
    windows = CropAndFlip(CROP, flip=True).windows(rows, [Run(SEED, 0, ROWS)], sizes)
    cells = []
    for number, row in enumerate(rows.tolist()):
        before = Image.fromarray(outlined(data, *(part.numpy() for part in data[row])))
        after = outlined(data, images[row], labels[row])
        ImageDraw.Draw(before).rectangle(frame(windows, number, data.size(row)), outline=FRAME, width=3)
        drawn = np.asarray(before.resize(BOX[::-1], Image.Resampling.BOX))
        cells.append(Cell(f"{data.key(row)}, {words(windows, number, data.size(row))}", (drawn, after)))
    grid = SheetGrid(COLUMNS, ROWS // COLUMNS, BOX, 2, stacked=True, noted=False)
    return draw_sheet("Rows as stored, and their windows as delivered", CALL, grid, cells, Legend())


def outlined(data: SegDataset, image: NDArray[np.uint8], label: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the picture with the outlines of its label."""
    picture, classes = data.fields
    drawing = draw(classes, label, Look(palette=data.classes.palette))
    return overlay(draw(picture, image).rgb, drawing, opacity=0.15, outlines=True)


def frame(windows: BatchWindows, number: int, size: tuple[int, ...]) -> tuple[float, ...]:
    """Return left, top, right and bottom of the window in the picture as stored."""
    assert windows.size is not None, "a crop has a size"
    assert windows.scaled is not None, "this crop scales"
    factors = np.array(size) / windows.scaled[number]
    start = np.array(windows.starts[number])
    (top, left), (bottom, right) = start * factors, (start + windows.size) * factors - 1
    return left, top, right, bottom


def words(windows: BatchWindows, number: int, size: tuple[int, ...]) -> str:
    """Return how much the picture was scaled, and whether its window is flipped."""
    assert windows.scaled is not None, "this crop scales"
    flipped = ", flipped" if windows.flips[number] else ""
    return f"scale {windows.scaled[number][0] / size[0]:.2f}{flipped}"
