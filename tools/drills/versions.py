"""Raw folders with a version in every pixel and in the number of pairs: a reader can check that it sees only one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scenes.pictures import write_picture
from scenes.tiny import CLASSES, COLOURS, write_classes

from readers import open_dataset
from readers.dataset import SegDataset

SIDE = 16
CHANGING, LASTING = "train", "val"
"""The split that differs in every version, and the one that stays the same and whose shards are reused."""


def pairs(version: int) -> int:
    """Return the number of pairs, which differs between versions near each other."""
    return 2 + version % 5


def make_version(raw: Path, version: int) -> None:
    """Make or change a raw folder to this version."""
    shutil.rmtree(raw / CHANGING, ignore_errors=True)
    _write(raw, CHANGING, version, pairs(version))
    if not (raw / LASTING).is_dir():
        _write(raw, LASTING, 0, 3)
        write_classes(raw, CLASSES)


def _write(raw: Path, split: str, version: int, count: int) -> None:
    for index in range(count):
        write_pair(raw, split, version, index)


def write_pair(raw: Path, split: str, version: int, index: int) -> None:
    """Write one pair of a version."""
    pixels = np.full((SIDE, SIDE, 3), _colour(version, index), np.uint8)
    write_picture(raw / split / "images" / f"{index}.png", pixels)
    write_picture(raw / split / "masks" / f"{index}.png", np.broadcast_to(COLOURS[version % 4], (SIDE, SIDE, 3)))


def _colour(version: int, index: int) -> tuple[int, int, int]:
    return version % 256, version // 256, index


def version_of(dataset: SegDataset) -> int:
    """Return the version of all rows. Raise ValueError if versions are mixed, or rows are missing or too many."""
    images = [dataset[row] for row in range(len(dataset))]
    low, high = (int(number) for number in images[0][0][:2, 0, 0])
    version = low + 256 * high
    if len(images) != pairs(version):
        raise ValueError(f"version {version} has {pairs(version)} rows, and {len(images)} were read")
    for index, (image, label) in enumerate(images):
        _check(version, index, image.numpy(), label.numpy())
    return version


def _check(version: int, index: int, image: NDArray[np.uint8], label: NDArray[np.uint8]) -> None:
    colour = np.array(_colour(version, index), np.uint8)[:, None, None]
    if not (image == colour).all() or not (label.argmax(0) == version % 4).all():
        raise ValueError(f"row {index} is of another version than {version}, the version of the rows before it")


def read_version(out: Path) -> int:
    """Open a pack and read the split that changes."""
    return version_of(open_dataset(out, CHANGING))
