"""A build into a bucket on loopback, next to the same build into a folder, and plain PUTs of the same objects.

    tools/run bench.bucket_builds [--pairs 1200] [--rounds 5] [--format npy] [--keep FOLDER]

The server is MiniStack, a process on the same cores that keeps all objects in memory, so the clock counts its work. The
CPU seconds are those of the build alone. Pairs are of 512x512, in turns; *plain PUTs* send what the build has sent,
by as many threads as cores.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from drills.s3_server import BUCKET, started
from program import parser
from scenes.noise import make_blocks
from tables import aligned

from readers.contract.manifest import SHARDS, STORAGES
from readers.machine import usable_cores
from readers.stores.open_store import open_store

SIDE, CLASSES = 512, 12
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """Seconds, and the CPU seconds of all processes."""

    seconds: float
    cpu: float


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=1200)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    # This process becomes the parent of processes that a build leaves behind, so that `build` waits for them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as temporary:
        root = (chosen.keep or Path(temporary)).resolve()
        raw, out = root / f"raw-{chosen.pairs}", Path(temporary).resolve() / "out"
        if not raw.is_dir():
            make_blocks(raw, chosen.pairs, (SIDE, SIDE), CLASSES, np.random.default_rng(0))
        found: dict[str, list[Cost]] = {"folder": [], "bucket": [], "plain PUTs": []}
        with started(Path(temporary)):
            for number in range(chosen.rounds):
                url = f"s3://{BUCKET}/{number}"
                options_of = ["--format", chosen.format, "--workers", str(usable_cores())]
                shutil.rmtree(out, ignore_errors=True)
                targets = {"folder": str(out), "bucket": url}
                for name in sorted(targets, reverse=bool(number % 2)):
                    found[name].append(build(raw, targets[name], *options_of))
                found["plain PUTs"].append(put_all(out, f"{url}-plain"))
                for prefix in (url, f"{url}-plain"):  # the server has them in memory
                    store = open_store(prefix)
                    store.delete([entry.name for entry in store.list("")])
    print(*aligned(list(table(found))), sep="\n")


def build(raw: Path, out: str, *options: str) -> Cost:
    """Run a build to its end, and wait for all processes that it started."""
    settings = ["--quiet", "--labels", "index", "--classes", str(CLASSES), *options]
    command = [sys.executable, "-m", "packer", "build", *settings, str(raw), out]
    before, started_at = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        process.wait()
    seconds = time.perf_counter() - started_at
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-process.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def put_all(pack: Path, url: str) -> Cost:
    """Send the files of the shards of a pack."""
    store, paths = open_store(url), sorted((pack / SHARDS).iterdir())

    def put(path: Path) -> None:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            store.put(path.name, bytes(data))

    started_at, spent = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(usable_cores()) as threads:
        list(threads.map(put, paths))
    return Cost(time.perf_counter() - started_at, time.process_time() - spent)


def table(found: dict[str, list[Cost]]) -> Iterator[tuple[str, ...]]:
    """Yield the lines: medians, and the ratio of the folder's seconds to those of the same round."""
    yield ("", "seconds", "least", "most", "of folder", "CPU s", "of folder")
    for name, costs in found.items():
        clocks, cpus = [cost.seconds for cost in costs], [cost.cpu for cost in costs]
        pairs = list(zip(found["folder"], costs, strict=True))
        ratios = (
            median(base.seconds / cost.seconds for base, cost in pairs),
            median(base.cpu / cost.cpu for base, cost in pairs),
        )
        numbers = (median(clocks), min(clocks), max(clocks), ratios[0], median(cpus), ratios[1])
        yield (name, *(f"{number:.2f}" for number in numbers))
