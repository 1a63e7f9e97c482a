"""A pack of what a function returns that costs nothing, next to np.save of the same arrays, until all is on the disk.

    tools/run bench.callable [--rows 2048] [--rounds 5] [--formats npy arrow]

`np.save, files` writes a file for each array, as a loop over the rows does. `np.save, shards` stacks the arrays of 128
rows first, which is the fastest that a user can write by hand. Both use a process for each core, and fsync each file.
*command* is a whole process with its imports, *shards* its time without start and end, *cpu* that of all its processes.
The bench fails if the checksums of the packed rows are not those of the arrays.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from program import TOOLS, parser
from tables import aligned
from zlib_ng.zlib_ng import crc32

from bench.converting import Turn, checksums, prepare, table
from bench.cpu import cpu_seconds
from bench.free_rows import CLASSES, DISTINCT, load, scene
from bench.machine import machine
from readers.contract.manifest import STORAGES
from readers.machine import usable_cores

STACKED = 128
WRITERS = {"np.save, files": 1, "np.save, shards": STACKED}
"""The rows of a file."""
CHILD = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); from bench.callable import announced; announced()"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=2048)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--formats", nargs="+", choices=STORAGES, default=list(STORAGES))
    chosen = options.parse_args()
    print(f"{chosen.rows} rows of 1 MiB", machine(), sep="\n", flush=True)
    turns: dict[str, list[Turn]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "out"
        for _ in range(chosen.rounds):
            for name in (*WRITERS, *chosen.formats):
                turns.setdefault(name, []).append(measured(name, target, chosen.rows))
    print("", *aligned(table(turns, chosen.rows)), sep="\n")


def measured(name: str, out: Path, rows: int) -> Turn:
    """Write with one candidate, in a process of its own, and check what was written."""
    prepare(out)
    started = time.perf_counter()
    child = [sys.executable, "-c", CHILD, name, str(out), str(rows)]
    done = subprocess.run(child, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    if name in STORAGES and Counter(checksums(out).values()) != expected(rows):
        raise RuntimeError(f"{name}: the rows differ from the arrays")
    shards, cpu = json.loads(done.stdout)
    return Turn(seconds, shards, cpu)


def announced() -> None:
    """Write with the candidate that the command line names; print the seconds, and the CPU seconds of all processes."""
    name, out, rows = sys.argv[1:]
    print(json.dumps([write(name, out, int(rows)), cpu_seconds()]))


def expected(rows: int) -> Counter[tuple[int, ...]]:
    """Return how many rows have each pair of checksums."""
    scenes = [scene(number) for number in range(DISTINCT)]
    found = [(crc32(each["image"].transpose(2, 0, 1).tobytes()), crc32(each["label"].data)) for each in scenes]
    return Counter(found[number % DISTINCT] for number in range(rows))


def write(name: str, out: str, rows: int) -> float:
    """Write all rows and return the seconds."""
    if name in WRITERS:
        started = time.perf_counter()
        save_all(Path(out), rows, WRITERS[name])
        return time.perf_counter() - started
    from packer import Rows, build_pack

    source = Rows([f"{number:06}" for number in range(rows)], load)
    summary = build_pack(source, out, classes=CLASSES, labels="index", format=name)
    return summary.stages["build"]


def save_all(out: Path, rows: int, together: int) -> None:
    """Save the arrays of so many rows to each file, with a process for each core."""
    out.mkdir()
    with multiprocessing.get_context("fork").Pool(usable_cores()) as pool:
        pool.starmap(save, [(out, first, min(first + together, rows)) for first in range(0, rows, together)])
    sync(out)


def save(out: Path, first: int, stop: int) -> None:
    loaded = [load(str(number)) for number in range(first, stop)]
    for name in ("image", "label"):
        path = out / f"{first:06}.{name}.npy"
        arrays = [fields[name] for fields in loaded]
        np.save(path, arrays[0] if len(arrays) == 1 else np.stack(arrays))
        sync(path)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
