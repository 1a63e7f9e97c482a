"""Raw folders of a version: every pixel, and the number of pairs, tell which; a reader sees whether it got only one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from drills.tiny import CLASSES, COLOURS, write_classes, write_png
from readers import open_dataset
from readers.dataset import SegDataset

SIDE = 16
CHANGING, LASTING = "train", "val"
"""The split that is another in every version; and the one that is not, whose shards are reused."""


def pairs(version: int) -> int:
    """So that versions near each other differ in it."""
    return 2 + version % 5


def make_version(raw: Path, version: int) -> None:
    """Make a raw folder what this version is."""
    shutil.rmtree(raw / CHANGING, ignore_errors=True)
    _write(raw, CHANGING, version, pairs(version))
    if not (raw / LASTING).is_dir():
        _write(raw, LASTING, 0, 3)
        write_classes(raw, CLASSES)


def _write(raw: Path, split: str, version: int, count: int) -> None:
    for place in range(count):
        write_pair(raw, split, version, place)


def write_pair(raw: Path, split: str, version: int, place: int) -> None:
    """The pair at this place of a version."""
    pixels = np.full((SIDE, SIDE, 3), _colour(version, place), np.uint8)
    write_png(raw / split / "images" / f"{place}.png", pixels)
    write_png(raw / split / "masks" / f"{place}.png", np.broadcast_to(COLOURS[version % 4], (SIDE, SIDE, 3)))


def _colour(version: int, place: int) -> tuple[int, int, int]:
    return version % 256, version // 256, place


def version_of(dataset: SegDataset) -> int:
    """The one version of which every row is; ValueError where there is another in it, or a row too few or too many."""
    images = [dataset[row] for row in range(len(dataset))]
    low, high = (int(number) for number in images[0][0][:2, 0, 0])
    version = low + 256 * high
    if len(images) != pairs(version):
        raise ValueError(f"version {version} has {pairs(version)} rows, and {len(images)} were read")
    for place, (image, label) in enumerate(images):
        _check(version, place, image.numpy(), label.numpy())
    return version


def _check(version: int, place: int, image: NDArray[np.uint8], label: NDArray[np.uint8]) -> None:
    colour = np.array(_colour(version, place), np.uint8)[:, None, None]
    if not (image == colour).all() or not (label.argmax(0) == version % 4).all():
        raise ValueError(f"row {place} is not of version {version} like the rows before it")


def read_version(out: Path) -> int:
    """Open a pack and read all that changes."""
    return version_of(open_dataset(out, CHANGING))
