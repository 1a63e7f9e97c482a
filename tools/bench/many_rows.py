"""Make a pack of very many tiny rows, for benches of commands that show packs.

    tools/run bench.many_rows OUT [--rows 1000000] [--workers 2]

Rows are 16x16 with 20 classes, of which the last are rare, and ignored pixels, in four splits. Each thousandth image of
train is in val, too: 10^6 rows have 1,000 findings. Two cores need some 14 minutes for 10^6 rows.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from program import parser

from packer import Rows, build_pack
from readers.machine import usable_cores

SIDE, PATCH, CLASSES, IGNORE = 16, 4, 20, 255
SPLITS = ("train",) * 7 + ("val", "test", "other")
"""The split of a row, by the last digit of its number."""
EVERY = 1000
DOUBLE = SPLITS.index("val")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--workers", type=int, default=usable_cores())
    chosen = options.parse_args()
    began = time.perf_counter()
    make_pack(chosen.out, chosen.rows, chosen.workers)
    print(f"{chosen.rows:,} rows in {time.perf_counter() - began:.0f} s")


def make_pack(out: Path, rows: int, workers: int) -> None:
    """Build the pack from rows that a function makes."""
    keys = [(SPLITS[number % len(SPLITS)], f"{number:07d}") for number in range(rows)]
    names = [f"class {number}" for number in range(CLASSES)]
    build_pack(
        Rows(keys, make_row, sizes=(SIDE, SIDE)),
        out,
        classes=names,
        labels="index",
        ignore=[str(IGNORE)],
        shard_size="1MB",
        workers=workers,
    )


def make_row(key: tuple[str, str]) -> dict[str, Any]:
    """Return a row of noise with patches of classes. Some rows of val have the image of a row of train."""
    number = int(key[1])
    image = number - DOUBLE if number % EVERY == DOUBLE else number
    dice = np.random.default_rng(image)
    shade = 40 + image % 160
    noise = dice.integers(0, 40, (SIDE, SIDE, 3), np.uint8) + np.uint8(shade)
    patches = (CLASSES * dice.random((PATCH, PATCH)) ** 3).astype(np.uint8)
    if number % 7 == 0:
        patches[0] = IGNORE
    side = SIDE // PATCH
    return {"image": noise, "label": patches.repeat(side, 0).repeat(side, 1)}
