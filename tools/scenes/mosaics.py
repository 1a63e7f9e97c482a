"""Large pictures with labels, made of photographs: each square is a window of one, enlarged if it is too small."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from scenes.pictures import read_picture, write_picture
from scenes.street import Pixels

SIZE, SQUARE = (1024, 2048), 512
FAST_PNG = (cv2.IMWRITE_PNG_COMPRESSION, 1)
Photograph = tuple[Pixels, Pixels]


@dataclass(frozen=True)
class Mosaics:
    """Pictures of SIZE with labels, which are files in `raw`."""

    raw: Path
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]:
        return read_picture(self._file("images", row)), _numbers(self._file("labels", row))

    def _file(self, kind: str, row: int) -> Path:
        return self.raw / kind / f"{row:05}.png"

    def make(self, photographs: Path) -> None:
        """Make the files, unless an earlier run did, from `images` and `labels` of a folder."""
        if len(list(self.raw.glob("labels/*.png"))) == self.count:
            return
        known = [
            (read_picture(path), _numbers(photographs / "labels" / f"{path.stem}.png"))
            for path in sorted((photographs / "images").iterdir())
        ]

        def make(row: int) -> None:
            image, label = _mosaic(known, np.random.default_rng(row))
            write_picture(self._file("images", row), image, FAST_PNG)
            write_picture(self._file("labels", row), label)

        with ThreadPoolExecutor() as pool:
            list(pool.map(make, range(self.count)))


def _numbers(path: Path) -> Pixels:
    """Return the class numbers of a label; of a file with a palette its indices."""
    with Image.open(path) as label:
        return np.array(label, np.uint8)


def _mosaic(photographs: list[Photograph], dice: np.random.Generator) -> Photograph:
    image, label = np.empty((*SIZE, 3), np.uint8), np.empty(SIZE, np.uint8)
    for top in range(0, SIZE[0], SQUARE):
        for left in range(0, SIZE[1], SQUARE):
            part = slice(top, top + SQUARE), slice(left, left + SQUARE)
            image[part], label[part] = _square(*photographs[dice.integers(len(photographs))], dice)
    return image, label


def _square(image: Pixels, label: Pixels, dice: np.random.Generator) -> Photograph:
    """Return a random window of a photograph, enlarged just as much as it needs."""
    scale = max(1, SQUARE / min(label.shape))
    height, width = (max(SQUARE, round(side * scale)) for side in label.shape)
    top, left = dice.integers(height - SQUARE + 1), dice.integers(width - SQUARE + 1)
    part = slice(top, top + SQUARE), slice(left, left + SQUARE)
    pixels: Any = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC)
    numbers: Any = cv2.resize(label, (width, height), interpolation=cv2.INTER_NEAREST)
    return pixels[part], numbers[part]
