"""Seconds to draw rows of large pictures: the sheet, one row, and the command.

    tools/run bench.sheets [--rounds 5] [--height 1024] [--width 2048]

Each figure is the median of all rounds, and in brackets the least and the most, warm. `rows` is after the imports.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import line, spread

from packer import Rows, build_pack
from readers import open_dataset

ROWS, CLASSES = 24, 19
WIDTHS = (-34, 24)


def main() -> None:
    options = parser(__doc__)
    for name, default in (("rounds", 5), ("height", 1024), ("width", 2048)):
        options.add_argument(f"--{name}", type=int, default=default)
    chosen = options.parse_args()
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        rows = Rows([f"{row:06}" for row in range(ROWS)], partial(make_row, chosen.height, chosen.width))
        build_pack(rows, out, classes=CLASSES, labels="index")
        data = open_dataset(out)
        command = [sys.executable, "-m", "packer", "sheet", str(out), "-n", str(ROWS), "-o", f"{folder}/sheet.png"]
        cases: dict[str, Callable[[], object]] = {
            f"a sheet of {ROWS} rows": lambda: data.sheet(ROWS),
            "a row at its size": lambda: data.show(3),
            "a row, 256 pixels on its side": lambda: data.show(3, size=256),
            f"packer sheet -n {ROWS}, with its start": lambda: subprocess.run(command, check=True, capture_output=True),
        }
        print(line((f"{chosen.height}x{chosen.width}", "ms"), WIDTHS))
        for name, work in cases.items():
            work()
            print(line((name, spread([timed(work) for _ in range(chosen.rounds)])), WIDTHS))


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds that it takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def make_row(height: int, width: int, key: str) -> dict[str, NDArray[np.uint8]]:
    """Return squares of random colours with a random class each."""
    dice = np.random.default_rng(int(key))
    coarse = -(-height // 16), -(-width // 16)
    squares = dice.integers(0, 256, (*coarse, 3), np.uint8), dice.integers(0, CLASSES, coarse, np.uint8)
    image, label = (part.repeat(16, 0).repeat(16, 1)[:height, :width] for part in squares)
    return {"image": image, "label": label}
