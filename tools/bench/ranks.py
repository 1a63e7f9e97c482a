"""Several processes on one machine that read one pack, as the ranks of a training do, next to one process alone.

    tools/run bench.ranks [--ranks 2 8] [--rounds 5] [--keep FOLDER]

Each rank is a process with a loader of its own, and gets its share of the rows. All ranks begin at the same moment, and
make so many passes that each reads PASSES times as many rows as the pack has: one pass takes a tenth of a second, in
which starting counts. The rate of a round is the number of rows of all
ranks, divided by the time from the first start to the last end. It is compared with the fastest loader of one process,
with 1 thread or a thread for each core, in the same round.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
from program import parser
from scenes.noise import make_blocks
from tables import aligned

from bench.reading import BATCH, CLASSES, SIDE, build
from readers import open_dataset
from readers.machine import usable_cores

PAIRS = 1200
PASSES = 10


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--ranks", type=int, nargs="+", default=[2, 8], help="default: %(default)s")
    options.add_argument("--pairs", type=int, default=PAIRS, help="default: %(default)s")
    options.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = chosen.keep or Path(folder)
        pack = root / "pack"
        if not pack.is_dir():
            make_blocks(root / "raw", chosen.pairs, (SIDE, SIDE), CLASSES, np.random.default_rng(0))
            build(root / "raw", pack, "npy")
        print(f"{chosen.pairs} rows of 1 MiB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        print("\n".join(aligned(compare(pack, chosen.ranks, chosen.rounds))))


def compare(pack: Path, numbers: list[int], rounds: int) -> list[tuple[str, ...]]:
    """Measure in turn one process with each number of threads, and each number of ranks; return the table."""
    single = {threads: f"1 process, {threads} threads" for threads in sorted({1, usable_cores()})}
    several = {ranks: f"{ranks} ranks" for ranks in numbers}
    rates: dict[str, list[float]] = {name: [] for name in (*single.values(), *several.values())}
    for _ in range(rounds):
        for threads, name in single.items():
            rates[name].append(rate(pack, 1, threads))
        for ranks, name in several.items():
            rates[name].append(rate(pack, ranks, max(1, usable_cores() // ranks)))
    best = [max(round_rates) for round_rates in zip(*(rates[name] for name in single.values()), strict=True)]
    table: list[tuple[str, ...]] = [("", "rows/s", "least", "most", "of best single", "least", "most")]
    for name, found in rates.items():
        ratios = [mine / other for mine, other in zip(found, best, strict=True)]
        table.append((name, *(f"{of(found):.0f}" for of in STATISTICS), *(f"{of(ratios):.2f}" for of in STATISTICS)))
    return table


STATISTICS: tuple[Any, ...] = (statistics.median, min, max)


def rate(pack: Path, ranks: int, threads: int) -> float:
    """Return the rows per second of all ranks together."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(ranks), context.SimpleQueue()
    workers = [
        context.Process(target=read, args=(pack, rank, ranks, threads, barrier, results)) for rank in range(ranks)
    ]
    for worker in workers:
        worker.start()
    passes: list[tuple[int, float, float]] = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    counts, starts, ends = zip(*passes, strict=True)
    rows: int = sum(counts)
    seconds: float = max(ends) - min(starts)
    return rows / seconds


def read(pack: Path, rank: int, ranks: int, threads: int, barrier: Barrier, results: Any) -> None:
    """Make a pass to warm up, wait for the others, and read PASSES times as many rows as the pack has."""
    loader = open_dataset(pack).loader(BATCH, shuffle=True, rank=rank, world_size=ranks, threads=threads)
    for _ in loader:
        pass
    barrier.wait()
    started = time.monotonic()
    rows = sum(len(images) for _ in range(ranks * PASSES) for images, _ in loader)
    results.put((rows, started, time.monotonic()))
