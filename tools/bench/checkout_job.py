"""The reading half of bench.checkouts: passes over a pack with the `readers` of the folder that it is started in.

For each line of input, the name of a way to read, it reads for some time and prints the rows, the seconds and the CPU
seconds, those of worker processes included.

    echo loader | tools/run bench.checkout_job CHECKOUT PACK SECONDS
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from multiprocessing import active_children
from typing import Any

from torch.utils.data import DataLoader

import readers
from readers import open_dataset

BATCH, SIDE = 32, 256
"""The rows of a batch, and the side of a crop."""
WAYS = ("loader", "loader, in order", "loader, crops", "rows", "DataLoader, 2 workers")


def main() -> None:
    folder, pack, seconds = sys.argv[1:]
    if not str(readers.__file__).startswith(folder):
        raise SystemExit(f"{readers.__file__} is not in {folder}")
    warnings.simplefilter("ignore")
    passes = dict(zip(WAYS, ways_to_read(pack), strict=True))
    for name in map(str.rstrip, sys.stdin):
        rows, spent, started = 0, cpu_seconds(), time.perf_counter()
        while time.perf_counter() - started < float(seconds):
            rows += sum(len(batch[0]) for batch in passes[name]())
        print(rows, time.perf_counter() - started, cpu_seconds() - spent, flush=True)


def ways_to_read(pack: str) -> list[Callable[[], Iterable[Any]]]:
    """Return a function for each of WAYS. It gives the batches of an epoch."""
    rows = open_dataset(pack, "all")
    loaders: list[Iterable[Any]] = [
        rows.loader(BATCH, shuffle=True),
        rows.loader(BATCH),
        rows.loader(BATCH, shuffle=True, crop=(SIDE, SIDE)),
    ]
    workers = DataLoader(rows, BATCH, shuffle=True, num_workers=2, persistent_workers=True)
    return [
        *((lambda loader=loader: loader) for loader in loaders),
        lambda: ([part[None] for part in rows[row]] for row in range(len(rows))),
        lambda: workers,
    ]


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its running children, finer than the ticks of /proc."""
    children = (child.pid for child in active_children())
    return time.process_time() + sum(time.clock_gettime(~pid << 3 | 2) for pid in children if pid)


if __name__ == "__main__":
    main()
