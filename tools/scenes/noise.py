"""Raw folders of random pixels, for benches and drills in which the pixels do not matter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

BLOCK = 16
"""The side of a block of one class in a label of `make_blocks`, in pixels."""
DISTINCT = 24


def write_noise(
    raw: Path, key: str, size: tuple[int, int], classes: int, seed: int | Sequence[int], labels: str = "labels"
) -> None:
    """Write a pair of PNG files, `images/KEY.png` and `LABELS/KEY.png`. The same seed gives the same pixels."""
    dice = np.random.default_rng(seed)
    for kind, values, shape in (("images", 256, (*size, 3)), (labels, classes, size)):
        path = raw / kind / f"{key}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a hard link
        cv2.imwrite(str(path), dice.integers(0, values, shape, np.uint8))


def make_blocks(raw: Path, pairs: int, size: tuple[int, int], classes: int, dice: np.random.Generator) -> None:
    """Make a folder of DISTINCT pairs of BMP and PNG, and links to them. Copying costs the same for any content."""
    height, width = size
    for number in range(pairs):
        first = number % DISTINCT
        for kind, suffix in (("images", ".bmp"), ("labels", ".png")):
            path = raw / kind / f"{number:05}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if number != first:
                path.hardlink_to(path.with_name(f"{first:05}{suffix}"))
            elif kind == "images":
                cv2.imwrite(str(path), dice.integers(0, 256, (height, width, 3), np.uint8))
            else:
                blocks = dice.integers(0, classes, (-(-height // BLOCK), -(-width // BLOCK)), np.uint8)
                cv2.imwrite(str(path), np.kron(blocks, np.ones((BLOCK, BLOCK), np.uint8))[:height, :width])
