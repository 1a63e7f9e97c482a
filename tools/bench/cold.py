"""Random rows of a pack that is not in memory, next to the rate at which the disk delivers its files in order.

    tools/run bench.cold [--gib 4] [--rounds 3] [--format npy] [--keep FOLDER]

Before each pass the pack is dropped from the page cache, and the rest that stays there is counted. The reference reads
the files in order, past the page cache (O_DIRECT), with four requests at a time. Rates are of the bytes of the rows.
"""

from __future__ import annotations

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
from program import parser
from scenes.noise import make_blocks
from tables import aligned

from bench import reading
from readers import open_dataset
from readers.contract.manifest import SHARDS, STORAGES

BLOCK, DEPTH = 4 << 20, 4
"""The size of the requests of the reference, and how many are under way at a time."""
MOST_LEFT = 0.01
"""The largest share of the pack that may be in memory when a pass begins."""
DROP_SECONDS = 20
"""The most seconds that the kernel may take to drop the pack."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gib", type=float, default=4)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        pack = large_pack(chosen.keep or Path(temporary), chosen.format, chosen.gib)
        files = shard_files(pack)
        size = sum(path.stat().st_size for path in files)
        print(f"{chosen.format}, {len(open_dataset(pack))} rows, {size / 2**30:.2f} GiB in {len(files)} files")
        print("", *aligned(rate_table(measure(ways_to_read(pack, files), files, chosen.rounds))), sep="\n")


def large_pack(root: Path, storage: str, gib: float) -> Path:
    """Return a pack of so many GiB, and make it if it does not exist."""
    pack = root / f"cold-{storage}-{gib:g}"
    if not pack.is_dir():
        pairs = int(gib * 2**30) // (4 * reading.SIDE**2)
        raw = root / f"cold-raw-{pairs}"
        if not raw.is_dir():
            make_blocks(raw, pairs, (reading.SIDE, reading.SIDE), reading.CLASSES, np.random.default_rng(1))
        reading.build(raw, pack, storage)
    return pack


def shard_files(pack: Path) -> list[Path]:
    return sorted(path for path in (pack / SHARDS).iterdir() if path.suffix != ".json")


def ways_to_read(pack: Path, files: list[Path]) -> dict[str, Callable[[], int]]:
    """Return the candidates by name. A pass returns the bytes that it delivered. The first is the reference."""
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
    """Read an eighth of the rows one by one, as a plain loop does."""
    dataset = open_dataset(pack)
    rows = np.random.default_rng(time.time_ns()).permutation(len(dataset))[: len(dataset) // 8].tolist()
    return sum(part.nbytes for row in rows for part in dataset[row])


def measure(table: dict[str, Callable[[], int]], files: list[Path], rounds: int) -> dict[str, list[float]]:
    """Return the bytes per second of each candidate in each round."""
    rates: dict[str, list[float]] = {name: [] for name in table}
    for _ in range(rounds):
        for name, read_all in table.items():
            drop_from_cache(files)
            started = time.perf_counter()
            done = read_all()
            rates[name].append(done / (time.perf_counter() - started))
            print(f"  {name:32}{rates[name][-1] / 1e6:8.0f} MB/s   PSS {pss() >> 20} MiB", flush=True)
    return rates


def drop_from_cache(files: list[Path]) -> None:
    """Drop files from the page cache, and check that they are gone.

    The kernel keeps a page that is still on its way in, or in a list of another core, so one request may leave some.
    """
    patience = time.monotonic() + DROP_SECONDS
    while (left := share_left(files)) > MOST_LEFT:
        if time.monotonic() > patience:
            raise SystemExit(f"{left:.1%} of the pack stays in memory; is another process reading it?")


def share_left(files: list[Path]) -> float:
    """Ask the kernel once to drop files from the page cache; return the share of their bytes that stays."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
    return sum(map(resident, files)) / sum(path.stat().st_size for path in files)


def resident(path: Path) -> int:
    """Return the number of bytes of a file that are in memory."""
    libc = ctypes.CDLL(None)
    data = np.memmap(path, np.uint8, "r")
    pages = -(-len(data) // mmap.PAGESIZE)
    flags = np.empty(pages, np.uint8)
    address = ctypes.c_void_p(data.ctypes.data)
    if libc.mincore(address, ctypes.c_size_t(len(data)), ctypes.c_void_p(flags.ctypes.data)):
        raise SystemExit(f"{path}: mincore failed")
    return int((flags & 1).sum()) * mmap.PAGESIZE


def pss() -> int:
    """Return the proportional memory (PSS) of this process in bytes."""
    for row in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if row.startswith("Pss:"):
            return int(row.split()[1]) << 10
    raise SystemExit("/proc/self/smaps_rollup has no line Pss:")


def rate_table(rates: dict[str, list[float]]) -> list[tuple[str, ...]]:
    """Return the rates of all candidates, and their ratios to the first in the same round."""
    reference = next(iter(rates.values()))
    table: list[tuple[str, ...]] = [("", "MB/s", "least", "most", "ratio", "least", "most")]
    for name, mine in rates.items():
        ratios = [rate / other for rate, other in zip(mine, reference, strict=True)]
        table.append(
            (
                name,
                *(f"{rate / 1e6:.0f}" for rate in (statistics.median(mine), min(mine), max(mine))),
                *(f"{ratio:.2f}" for ratio in (statistics.median(ratios), min(ratios), max(ratios))),
            )
        )
    return table
