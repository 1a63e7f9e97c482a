"""Rows from a function that costs nothing: arrays that are made once in each process. For bench.callable."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE, CLASSES, BLOCK = 512, 12, 16
DISTINCT = 24


def load(key: str) -> dict[str, NDArray[Any]]:
    """Return an image of noise and a label of blocks of one class, 1 MiB together."""
    return scene(int(key) % DISTINCT)


@cache
def scene(number: int) -> dict[str, NDArray[Any]]:
    dice = np.random.default_rng(number)
    blocks = dice.integers(0, CLASSES, (SIDE // BLOCK, SIDE // BLOCK), np.uint8)
    image = dice.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    return {"image": image, "label": np.kron(blocks, np.ones((BLOCK, BLOCK), np.uint8))}
