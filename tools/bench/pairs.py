"""Pairs as arrays: what the writers of libraries take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scenes.squares import SIDE, make_squares
from scenes.street import Pixels


class ArrayPairs(Protocol):
    """Pairs by their numbers, as arrays (side,side,3) and (side,side) that the writer may keep."""

    @property
    def side(self) -> int:
        """Height and width of all pictures."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]: ...


@dataclass(frozen=True)
class Pairs:
    """`images` (N,512,512,3) and `labels` (N,512,512), memory-mapped; `raw` is the folder of the same as PNG files."""

    raw: Path
    images: Any
    labels: Any

    @property
    def side(self) -> int:
        return SIDE

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Pixels, Pixels]:
        return np.array(self.images[row]), np.array(self.labels[row])


def make_pairs(root: Path, count: int) -> Pairs:
    """Make pairs, unless an earlier run did."""
    raw, images, labels = make_squares(root, count)
    return Pairs(raw, np.load(images, mmap_mode="r"), np.load(labels, mmap_mode="r"))


def save_rows(pairs: Pairs, out: Path) -> None:
    """Write a .npy file for each image and each label."""
    for name, column in (("image", pairs.images), ("label", pairs.labels)):
        (out / name).mkdir(parents=True)
        for row in range(len(pairs)):
            np.save(out / name / f"{row:05}.npy", column[row])


def parted(rows: int, parts: int) -> list[list[int]]:
    """Divide the numbers of all rows into `parts` runs of about the same length, one for each worker of a writer."""
    return [part.tolist() for part in np.array_split(np.arange(rows), min(parts, rows))]
