"""Epochs of a pack that a cache has, next to the same pack in a folder.

    tools/run bench.cached [--gib 1] [--rounds 15] [--seconds 2] [--format npy] [--keep FOLDER] [--cache FOLDER]

Every round reads shuffled epochs for so many seconds of each: the folder, the folder opened once more, and the cache,
in an order that changes from round to round. The folder opened once more shows how much two equal things differ on this
machine. Cache and folder lie on the same file system, unless --cache names another. CPU time is that of this process.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from program import parser
from tables import aligned

from bench.cold import large_pack
from readers import Loader, open_dataset
from readers.contract.manifest import STORAGES

BATCH = 16
REFERENCE = "folder"


class Turn(NamedTuple):
    """Seconds and CPU seconds for each row."""

    clock: float
    cpu: float


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gib", type=float, default=1)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    options.add_argument("--cache", type=Path, metavar="FOLDER", help="the folder around the cache")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.keep) as temporary:
        pack = large_pack(chosen.keep or Path(temporary), chosen.format, chosen.gib).absolute()
        with tempfile.TemporaryDirectory(dir=chosen.cache or temporary) as cache:
            near = {"folder": None, "folder, opened again": None, "cache": Path(cache)}
            loaders = {
                name: open_dataset(pack, "all", cache=target, staged=False).loader(BATCH, shuffle=True)
                for name, target in near.items()
            }
            turns = measured(loaders, chosen.rounds, chosen.seconds)
    print("", *aligned(list(table(turns))), sep="\n")


def measured(loaders: dict[str, Loader], rounds: int, seconds: float) -> dict[str, list[Turn]]:
    """Return what each loader took in each round."""
    for loader in loaders.values():
        turn(loader, 0)  # fetches, and touches every page
    turns: dict[str, list[Turn]] = {name: [] for name in loaders}
    names = list(loaders)
    for _ in range(rounds):
        for name in names:
            turns[name].append(turn(loaders[name], seconds))
        names.append(names.pop(0))
    return turns


def turn(loader: Loader, seconds: float) -> Turn:
    """Read whole epochs for at least so many seconds."""
    rows, started, before = 0, time.perf_counter(), os.times()
    while True:
        rows += sum(len(batch[0]) for batch in loader)
        clock = time.perf_counter() - started
        if clock >= seconds:
            break
    after = os.times()
    return Turn(clock / rows, (after.user + after.system - before.user - before.system) / rows)


def table(turns: dict[str, list[Turn]]) -> Iterator[tuple[str, ...]]:
    """Yield the lines: the median, and quartiles of the ratios to the folder in the same round."""
    yield ("", "rows/s", "quarter", "ratio", "quarter", "CPU us", "quarter", "ratio", "quarter")
    for name, mine in turns.items():
        clocks = [other.clock / each.clock for other, each in zip(turns[REFERENCE], mine, strict=True)]
        cpus = [each.cpu / other.cpu for other, each in zip(turns[REFERENCE], mine, strict=True)]
        rate, spent = 1 / median(each.clock for each in mine), 1e6 * median(each.cpu for each in mine)
        yield (name, f"{rate:.0f}", *quarters(clocks), f"{spent:.0f}", *quarters(cpus))


def quarters(ratios: list[float]) -> list[str]:
    """Return the median between the two quartiles."""
    return [f"{ratio:.3f}" for ratio in quantiles(ratios)]
