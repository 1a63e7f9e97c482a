"""Benchmark: random rows of a pack that is not in memory, next to the rate at which the disk gives its files in order.

    PYTHONPATH=tools python -m bench.cold [--gib 4] [--rounds 3] [--format npy] [--keep FOLDER]

Before each pass the pack is taken out of the page cache, and what is left there is counted. The reference reads the
files in order, past the page cache (O_DIRECT), with four requests under way. The rates are of the rows' bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bench import reading
from readers import open_dataset
from readers.contract.manifest import SHARDS, STORAGES

BLOCK, DEPTH = 4 << 20, 4
"""The reference's requests: their size, and how many are under way."""
MOST_LEFT = 0.01
"""A pass begins with no larger share of the pack in memory."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--format", choices=STORAGES, default="npy")
    parser.add_argument("--keep", type=Path, help="Where the data is made, and left for the next time.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        pack = root / f"cold-{chosen.format}-{chosen.gib:g}"
        if not pack.is_dir():
            make(root, pack, chosen.format, int(chosen.gib * 2**30))
        files = sorted(path for path in (pack / SHARDS).iterdir() if path.suffix != ".json")
        size = sum(path.stat().st_size for path in files)
        print(f"{chosen.format}, {len(open_dataset(pack))} rows, {size / 2**30:.2f} GiB in {len(files)} files")
        report(measured(contenders(pack, files), files, chosen.rounds))


def make(root: Path, pack: Path, storage: str, size: int) -> None:
    pairs = size // (4 * reading.SIDE**2)
    raw = root / f"cold-raw-{pairs}"
    if not raw.is_dir():
        reading.raw(raw, pairs, (reading.SIDE, reading.SIDE), np.random.default_rng(1))
    reading.build(raw, pack, storage)


def contenders(pack: Path, files: list[Path]) -> dict[str, Callable[[], int]]:
    """Each a pass that returns the bytes it delivered; the first is the reference."""
    return {
        "direct, in order, 4 under way": lambda: sum(direct(files)),
        "loader, random": lambda: looped(pack),
        "loader, random, drop_behind": lambda: looped(pack, drop_behind=True),
        'loader, "window"': lambda: looped(pack, shuffle="window"),
        "dataset[i], random": lambda: one_by_one(pack),
    }


def direct(files: list[Path]) -> Iterator[int]:
    with ThreadPoolExecutor(DEPTH) as pool:
        for path in files:
            blocks = range(0, path.stat().st_size, BLOCK)
            handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                yield from pool.map(lambda start, handle=handle: read_block(handle, start), blocks)
            finally:
                os.close(handle)


def read_block(handle: int, start: int) -> int:
    with mmap.mmap(-1, BLOCK) as buffer:
        return os.preadv(handle, [buffer], start)


def looped(pack: Path, shuffle: str | bool = True, **options: bool) -> int:
    loader = open_dataset(pack).loader(reading.BATCH, shuffle=shuffle, seed=time.time_ns(), **options)  # type: ignore[arg-type]
    return sum(part.nbytes for batch in loader for part in batch)


def one_by_one(pack: Path) -> int:
    """An eighth of the rows, as a plain loop reads them."""
    dataset = open_dataset(pack)
    rows = np.random.default_rng(time.time_ns()).permutation(len(dataset))[: len(dataset) // 8].tolist()
    return sum(part.nbytes for row in rows for part in dataset[row])


def measured(table: dict[str, Callable[[], int]], files: list[Path], rounds: int) -> dict[str, list[float]]:
    """Bytes per second of each in each round."""
    rates: dict[str, list[float]] = {name: [] for name in table}
    for _ in range(rounds):
        for name, act in table.items():
            forget(files)
            started = time.perf_counter()
            done = act()
            rates[name].append(done / (time.perf_counter() - started))
            print(f"  {name:32}{rates[name][-1] / 1e6:8.0f} MB/s   PSS {pss() >> 20} MiB", flush=True)
    return rates


def forget(files: list[Path]) -> None:
    """Take the files out of the page cache, and see that they are."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
    left = sum(map(resident, files)) / sum(path.stat().st_size for path in files)
    if left > MOST_LEFT:
        raise SystemExit(f"{left:.1%} of the pack stays in memory; is another process reading it?")


def resident(path: Path) -> int:
    """How many bytes of a file are in memory."""
    libc = ctypes.CDLL(None)
    data = np.memmap(path, np.uint8, "r")
    pages = -(-len(data) // mmap.PAGESIZE)
    flags = np.empty(pages, np.uint8)
    address = ctypes.c_void_p(data.ctypes.data)
    if libc.mincore(address, ctypes.c_size_t(len(data)), ctypes.c_void_p(flags.ctypes.data)):
        raise SystemExit(f"{path}: mincore failed")
    return int((flags & 1).sum()) * mmap.PAGESIZE


def pss() -> int:
    """This process's share of the memory it uses."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    raise SystemExit("the kernel does not tell the PSS")


def report(rates: dict[str, list[float]]) -> None:
    reference = next(iter(rates.values()))
    print(f"\n{'':32}{'MB/s':>8}{'least':>8}{'most':>8}{'ratio':>8}{'least':>8}{'most':>8}")
    for name, mine in rates.items():
        ratios = [one / other for one, other in zip(mine, reference, strict=True)]
        figures = "".join(f"{one / 1e6:8.0f}" for one in (statistics.median(mine), min(mine), max(mine)))
        print(f"{name:32}{figures}{statistics.median(ratios):8.2f}{min(ratios):8.2f}{max(ratios):8.2f}")


if __name__ == "__main__":
    main()
