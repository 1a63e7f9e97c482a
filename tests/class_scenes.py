"""Packs of rows in which some classes are rare: a blob of a few pixels, in a few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer import Rows, build_pack

NAMES = ["road", "wall", "rider", "train", "boat"]
RIDER, TRAIN, BOAT = 2, 3, 4
COUNT = 24
SIDES = (150, 220)
VOLUME = (20, 40, 50)


def label(number: int, sides: tuple[int, ...] = SIDES) -> NDArray[np.uint8]:
    """Return a label: road and wall everywhere, a rider in each fourth row, a train in two; no row has a boat."""
    dice = np.random.default_rng(number)
    index = np.zeros(sides, np.uint8)
    index[..., : int(dice.integers(0, sides[-1]))] = 1
    index[..., -1, :] = 255
    for label, every, length in ((RIDER, 4, 5), (TRAIN, 12, 7)):
        if number % every == 1:
            corner = [int(dice.integers(0, side - length - 1)) for side in sides]
            index[tuple(slice(begin, begin + length) for begin in corner)] = label
    return index


def make_pack(out: Path, storage: str = "npy", sides: tuple[int, ...] = SIDES, **options: Any) -> Path:
    """Build a pack whose images have the number of their row and the places of their pixels."""
    keys = [("train" if number < COUNT - 4 else "val", f"{number:03}") for number in range(COUNT)]

    def load(key: Any) -> dict[str, NDArray[Any]]:
        number = int(key[1])
        places = np.indices(sides).sum(0).astype(np.uint8)
        return {"image": places, "label": label(number, sides)}

    rows = Rows(keys, load, sizes=sides, types=load(keys[0]))
    given: dict[str, Any] = {"volumes": True} if len(sides) > 2 else {"size": "native"}
    build_pack(rows, out, classes=NAMES, ignore=["255"], format=storage, **{"labels": "index", **given, **options})
    return out
