"""Read a pack through one small cache in many processes at once, and kill them at random times.

    tools/run drills.cache [--readers 8] [--seconds 60] [--kill-every 0.3] [--part 0.3]

The budget is --part of the pack. Every 5 ms a watcher adds up the bytes in the cache. They must never be more than the
budget, each row must be that of the pack, and after the last process nothing unfinished may be left. Exits 1 if any of
this fails.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from program import REPO, parser

from drills.commands import must
from readers.contract.atomic import PARTIAL
from readers.contract.manifest import Manifest
from readers.location import Location
from readers.pack import Pack
from readers.stores.cache import open_cache
from readers.stores.locks import only_owner

PAUSE = 0.005


class Result(NamedTuple):
    """The outcome of a drill."""

    shards: int
    """The shards that were read and compared."""
    killed: int
    budget: int
    most: int
    """The most bytes that the watcher saw."""
    seen: int
    """The number of times that it looked."""
    faults: list[str]


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        read_for_ever(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        return
    options = parser(__doc__)
    options.add_argument("--readers", type=int, default=8)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--kill-every", type=float, default=0.3)
    options.add_argument("--part", type=float, default=0.3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary, "out")
        must("build", "--quiet", REPO / "data_samples" / "raw", out, "--shard-size", "256KiB")
        result = drill(out, Path(temporary, "cache"), chosen.readers, chosen.seconds, chosen.kill_every, chosen.part)
    print(*(f"{name}: {value}" for name, value in result._asdict().items()), sep="\n")
    sys.exit(bool(result.faults))


def drill(out: Path, target: Path, readers: int, seconds: float, kill_every: float, part: float) -> Result:
    """Read for so many seconds, and kill a reader every so often."""
    budget = int(Manifest.load(out).bytes * part)
    cache = open_cache(target, budget)
    chance = random.Random(0)
    alive = [started(out, target, budget, number) for number in range(readers)]
    ended: list[subprocess.Popen[str]] = []
    try:
        with watched(cache.budget.packs, cache.folder / "locks" / "budget") as sizes:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(kill_every * chance.uniform(0.5, 1.5))
                victim = alive.pop(chance.randrange(len(alive)))
                victim.kill()
                ended.append(victim)
                alive.append(started(out, target, budget, readers + len(ended)))
            for process in alive:
                process.terminate()
            texts = [process.communicate()[0] for process in (*ended, *alive)]
    finally:
        for process in (*ended, *alive):
            process.kill()
            process.wait()
    read_once(Location.of(out, "digest", False, target, budget, None, None).open())
    faults = [line for text in texts for line in text.splitlines() if line != "ok"]
    faults += [f"left over: {path}" for path in cache.budget.packs.rglob(PARTIAL + "*")]
    if max(sizes) > budget:
        faults.append(f"the cache had {max(sizes):,} bytes, and the budget is {budget:,}")
    return Result("".join(texts).count("ok\n"), len(ended), budget, max(sizes), len(sizes), faults)


def started(out: Path, target: Path, budget: int, seed: int) -> subprocess.Popen[str]:
    """Start a reader, which prints a line for each shard."""
    command = [sys.executable, "-m", "drills.cache", "read", str(out), str(target), str(budget), str(seed)]
    paths = os.pathsep.join([str(REPO), str(REPO / "tools")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextmanager
def watched(folder: Path, lock: Path) -> Iterator[list[int]]:
    """Add up the bytes of all files in a folder again and again. Nothing is made or deleted in the same moment."""
    sizes, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(PAUSE):
            with only_owner(lock):
                sizes.append(bytes_in(folder))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        stop.set()
        thread.join()


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder; unfinished ones of a fetch that failed may vanish."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(path, name).stat().st_size
    return total


def read_for_ever(out: str, target: Path, budget: int, seed: int) -> None:
    """Read random shards, each time as many as half of the budget has, and compare them with those of the pack."""
    chance = random.Random(seed)
    near, far = Location.of(out, None, False, target, budget, None, None).open(), Pack.open(Path(out))
    while True:
        numbers = chance.sample(range(len(far.table)), len(far.table))
        ends = accumulate(map(far.table.bytes, numbers))
        chosen = [number for number, end in zip(numbers, ends, strict=True) if end <= budget // 2] or numbers[:1]
        open_together = near.shards(chosen)
        for number in chosen:
            print("ok" if rows(near, number) == rows(far, number) else f"shard {number} differs", flush=True)
        del open_together
        if chance.random() < 0.3:
            near.close_shards()


def read_once(pack: Pack) -> None:
    """Read every shard; this also deletes what killed processes left, because the cache is full."""
    for number in range(len(pack.table)):
        rows(pack, number)


def rows(pack: Pack, number: int) -> list[bytes]:
    shard = pack.shard(number)
    return [shard.row(field, row).tobytes() for field in pack.fields for row in range(pack.table.rows(number))]


if __name__ == "__main__":
    main()
