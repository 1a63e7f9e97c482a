"""Tiny raw folders, which take next to no time to pack: what is drilled is everything around the pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

HEIGHT, WIDTH = 24, 36
SHARDS = ("--shard-size", "12KB")
"""Makes a shard of every pair or two."""
LONG_AGO = 1_500_000_000
Colour: TypeAlias = tuple[int, int, int]
CLASSES: Sequence[tuple[str, Colour]] = (
    ("sky", (70, 130, 180)),
    ("road", (128, 64, 128)),
    ("car", (0, 0, 142)),
    ("person", (220, 20, 60)),
)
COLOURS = np.array([colour for _, colour in CLASSES], np.uint8)


def make_tiny(raw: Path, splits: Mapping[str, int]) -> None:
    """`split/images` and `split/masks` with a class table, as if written long ago."""
    for number, (split, count) in enumerate(splits.items()):
        for place in range(count):
            add_pair(raw, split, f"street_{place:03}", 1000 * number + place)
    write_classes(raw, CLASSES)
    age(raw)


def add_pair(raw: Path, split: str, key: str, seed: int) -> None:
    """A pair whose pixels are decided by the seed."""
    pixels, colours = scene(seed)
    write_png(raw / split / "images" / f"{key}.png", pixels)
    write_png(raw / split / "masks" / f"{key}.png", colours)


def scene(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """An image, and a label in colours."""
    dice = np.random.default_rng(seed)
    coarse = dice.integers(0, len(CLASSES), (HEIGHT // 4, WIDTH // 4))
    return dice.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8), COLOURS[coarse.repeat(4, 0).repeat(4, 1)]


def write_png(path: Path, pixels: NDArray[Any]) -> None:
    """Write RGB as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ok, data = cv2.imencode(".png", np.ascontiguousarray(pixels[..., ::-1]))
    assert ok
    path.write_bytes(data.tobytes())


def write_classes(raw: Path, classes: Sequence[tuple[str, Colour]]) -> None:
    rows = [f"{name},{r},{g},{b}" for name, (r, g, b) in classes]
    (raw / "class_dict.csv").write_text("\n".join(["name,r,g,b", *rows]) + "\n")


def age(folder: Path, seconds: int = LONG_AGO) -> None:
    """As if every file there had been written long ago."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (seconds, seconds))
