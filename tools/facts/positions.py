"""Positions of the columns of shards, as a record would have them: its bytes, and the time in which a shard opens now.

    tools/run facts.positions

Positions are runs: where a run begins, the bytes from row to row, and the number of rows. Rows that are encoded or
native also need their lengths. docs/decisions.md says what was decided by these numbers.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser

from packer import Rows, build_pack
from readers.contract.manifest import STORAGES
from readers.formats.shard import Shard
from readers.pack import Pack

CASES: tuple[tuple[int, int, dict[str, Any]], ...] = (
    (16, 4000, {}),
    (64, 2000, {}),
    (256, 400, {}),
    (256, 400, {"encode": ["image=jpeg"]}),
)
"""The side of the pictures, their number, and the options of the build."""
TRIES = 9


def main() -> None:
    parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for side, count, options in CASES:
            for storage in STORAGES:
                out = Path(folder) / f"{side}-{storage}-{len(options)}"
                rows = Rows([f"{number:05}" for number in range(count)], Made(side), sizes=(side, side))
                build_pack(rows, out, classes="3", labels="index", format=storage, **options)
                record, milliseconds = measure(out)
                encoding = "".join(options.get("encode", ["raw"]))
                sizes = f"{record:9,.0f} B a shard, {record * shards_of(out) / count:6.1f} B a row"
                print(f"{side:4} {storage:6} {encoding:11} {sizes}, opened in {milliseconds:5.2f} ms")


class Made:
    """Makes the picture and the label of a key."""

    def __init__(self, side: int) -> None:
        self._side = side

    def __call__(self, key: str) -> dict[str, NDArray[np.uint8]]:
        random = np.random.default_rng(int(key))
        image = random.integers(0, 255, (self._side, self._side, 3)).astype(np.uint8)
        return {"image": image, "label": image[..., 0] % 3}


def shards_of(out: Path) -> int:
    return Pack.open(out).manifest.shards


def measure(out: Path) -> tuple[float, float]:
    """Return the mean bytes of the record of a shard, and the median milliseconds in which one is opened."""
    times, records = list[float](), list[int]()
    for _ in range(TRIES):
        pack = Pack.open(out)
        for number in range(pack.manifest.shards):
            started = time.perf_counter()
            shard = pack.shard(number)
            times.append(1000 * (time.perf_counter() - started))
            records.append(len(json.dumps(record_of(shard))))
    return sum(records) / len(records), median(times)


def record_of(shard: Shard) -> dict[str, Any]:
    """Return the positions of all columns that are read."""
    record: dict[str, Any] = {}
    for name, column in shard._columns.items():  # nothing else reads them all
        record[name] = runs_of(column.starts.tolist())
        if column.lengths is not None:
            record[f"{name}_lengths"] = column.lengths.tolist()
    return record


def runs_of(starts: list[int]) -> list[tuple[int, int, int]]:
    """Return positions as runs of equal steps."""
    runs = list[tuple[int, int, int]]()
    for start in starts:
        first, step, count = runs[-1] if runs else (start, 0, 0)
        if runs and (count == 1 or start == first + step * count):
            runs[-1] = (first, start - first if count == 1 else step, count + 1)
        else:
            runs.append((start, 0, 1))
    return runs
