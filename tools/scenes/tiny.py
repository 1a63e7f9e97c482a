"""Raw folders of tiny pictures that take next to no time to pack, for drills of everything around the pixels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from scenes.pictures import CLASS_TABLE, LONG_AGO, write_class_table, write_picture
from scenes.street import Pixels

HEIGHT, WIDTH = 24, 36
SHARDS = ("--shard-size", "12KB")
"""Options of a build that make a shard of every pair or two."""
Colour: TypeAlias = tuple[int, int, int]
CLASSES: Sequence[tuple[str, Colour]] = (
    ("sky", (70, 130, 180)),
    ("road", (128, 64, 128)),
    ("car", (0, 0, 142)),
    ("person", (220, 20, 60)),
)
COLOURS = np.array([colour for _, colour in CLASSES], np.uint8)


def make_tiny(raw: Path, splits: Mapping[str, int]) -> None:
    """Make `SPLIT/images`, `SPLIT/masks` and a class table, with old times of writing."""
    for number, (split, count) in enumerate(splits.items()):
        for index in range(count):
            add_pair(raw, split, f"street_{index:03}", 1000 * number + index)
    write_classes(raw, CLASSES)
    age(raw)


def add_pair(raw: Path, split: str, key: str, seed: int) -> None:
    """Write a pair. The same seed gives the same pixels."""
    pixels, colours = tiny_scene(seed)
    write_picture(raw / split / "images" / f"{key}.png", pixels)
    write_picture(raw / split / "masks" / f"{key}.png", colours)


def tiny_scene(seed: int) -> tuple[Pixels, Pixels]:
    """Return a random image, and a label in colours."""
    dice = np.random.default_rng(seed)
    coarse = dice.integers(0, len(CLASSES), (HEIGHT // 4, WIDTH // 4))
    return dice.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8), COLOURS[coarse.repeat(4, 0).repeat(4, 1)]


def write_classes(raw: Path, classes: Sequence[tuple[str, Colour]]) -> None:
    write_class_table(raw / CLASS_TABLE, classes)


def age(folder: Path, seconds: int = LONG_AGO) -> None:
    """Set the time of writing of every file in a folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (seconds, seconds))
