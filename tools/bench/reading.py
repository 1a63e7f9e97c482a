"""Reading rows of a pack in every way, next to a loop that only copies them.

    tools/run bench.reading [--rounds 7] [--only loader] [--keep FOLDER]

1,200 pairs of 512x512 (uint8 image, 12 classes), batches of 16, shuffled, page cache warm. The limit is the fastest of
several plain loops that copy mapped rows on all cores (copy_loops.py): the speed of memory. The candidates take turns.
The rate of each is divided by that of the limit in the same round, and these ratios are the result. In round 0 each
candidate proves its work: the sum of all bytes that it delivers must be that of the rows.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

# On a machine that is shared, threads of torch that spin while they wait slow the copy loop down.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch
from program import parser
from scenes.noise import make_blocks
from scenes.repeated import repeat_shard
from tables import aligned
from torch.utils.data import DataLoader

from bench.copy_loops import CopyLoop, copy_loops, fastest
from bench.window_loops import mapped_pictures, read_all, repeated, window_loops
from readers import Order, SegDataset, SlotDataLoader, open_dataset
from readers.contract.manifest import STORAGES
from readers.contract.onehot import expand

PAIRS, SIDE, CLASSES, BATCH = 1200, 512, 12, 16
WIDE = (1024, 2048)
CROP_PASSES = 8
Tensors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Candidate:
    """A way to read: a pass that yields batches, the name of the reference, and the ratio that is the goal."""

    name: str
    batches: Callable[[], Iterable[Any]]
    reference: str
    goal: float
    samples: int = PAIRS
    warm: Callable[[], object] = lambda: None
    """Called before each pass: brings into memory what nothing has read for a while."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", default="", metavar="TEXT", help="only candidates whose names contain this")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")  # torch warns about mapped memory that is read-only
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        make_all(root)
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, Python {sys.version.split()[0]}"
        )
        print(f"torch {torch.__version__}, numpy {np.__version__}, {torch.get_num_threads()} threads of torch\n")
        table = [
            candidate
            for candidate in candidates(root)
            if candidate.reference == candidate.name or chosen.only in candidate.name
        ]
        print("", *aligned(rate_table(table, measure(table, chosen.rounds))), sep="\n")
        measure_openings(root)


def measure(table: list[Candidate], rounds: int) -> dict[str, list[float]]:
    """Return the samples per second of each candidate in each round. Round 0 proves the work and warms up."""
    rates: dict[str, list[float]] = {candidate.name: [] for candidate in table}
    sums: dict[str, int] = {}
    for number in range(rounds + 1):
        for candidate in table:
            candidate.warm()
            started, samples, total = time.perf_counter(), 0, 0
            for batch in candidate.batches():
                samples += len(batch[0])
                total += int(batch[0][-1].view(-1)[-1]) if number else sum(int(part.numpy().sum()) for part in batch)
            if number:
                rates[candidate.name].append(samples / (time.perf_counter() - started))
            else:
                prove(candidate, samples, total, sums)
    return rates


def prove(candidate: Candidate, samples: int, total: int, sums: dict[str, int]) -> None:
    """Compare the sum of a candidate that delivers all pairs with that of the copy loop."""
    known = sums.setdefault("pairs", total) if candidate.samples == PAIRS else total
    if samples != candidate.samples or total != known:
        expected = f"{candidate.samples} with {known}"
        raise SystemExit(f"{candidate.name}: {samples} samples with a sum of {total}, expected {expected}")
    print(f"  {candidate.name:44}{samples:6} samples, sum of their bytes {total}", flush=True)


def rate_table(table: list[Candidate], rates: dict[str, list[float]]) -> list[tuple[str, ...]]:
    """Return the rates of all candidates, their ratios to the reference in the same round, and the goals."""
    rows: list[tuple[str, ...]] = [("", "samples/s", "least", "most", "ratio", "least", "most", "goal")]
    for candidate in table:
        mine = rates[candidate.name]
        numbers = (f"{rate:.0f}" for rate in (statistics.median(mine), min(mine), max(mine)))
        ratios = [rate / other for rate, other in zip(mine, rates[candidate.reference], strict=True)]
        compared = (statistics.median(ratios), min(ratios), max(ratios), candidate.goal)
        is_reference = candidate.reference == candidate.name
        rows.append((candidate.name, *numbers, *("" if is_reference else f"{ratio:.2f}" for ratio in compared)))
    return rows


def candidates(root: Path) -> list[Candidate]:
    images, labels = (np.load(root / f"{name}.npy", mmap_mode="r") for name in ("images", "labels"))
    stored = np.load(root / "planes.npy", mmap_mode="r")
    npy = open_dataset(root / "npy")
    wide = open_dataset(root / "wide")
    few = len(stored)
    copy, copies = fastest_copies("rows", copy_loops((images, labels)))
    plane_copy, plane_copies = fastest_copies("images and stored planes", copy_loops((images[:few], stored)), few)
    pictures = mapped_pictures(root / "wide", WIDE)
    warm = partial(read_all, pictures)
    warm()
    many, crops = CROP_PASSES * len(wide), repeated(looped(wide, crop=(SIDE, SIDE)), CROP_PASSES)
    window, windows = fastest_copies("the same windows", window_loops(pictures, SIDE, CROP_PASSES), many, warm)
    single, planes = "copy of each row, 1 thread", "copy of planes"
    return [
        copies,
        *(Candidate(f"loader, {storage}", looped(open_dataset(root / storage)), copy, 0.9) for storage in STORAGES),
        Candidate("DataLoader, 0 workers", stock(DataLoader, npy, 0), copy, 0.65),
        Candidate("DataLoader, 2 workers", stock(DataLoader, npy, 2), copy, 0.13),
        Candidate("SlotDataLoader, 2 workers", stock(SlotDataLoader, npy, 2), copy, 0.6),
        Candidate(single, lambda: one_by_one(images, labels), single, 1),
        Candidate("dataset[i]", lambda: ([part[None] for part in npy[row]] for row in range(PAIRS)), single, 0.7),
        Candidate(planes, lambda: one_by_one(stored, stored[:, :1]), planes, 1, few),
        Candidate("one-hot of index, labels alone, 1 thread", lambda: expanded(labels[:few]), planes, 2, few),
        plane_copies,
        Candidate("loader, one-hot of index", looped(npy, labels="onehot", rows=few), plane_copy, 1, few),
        windows,
        Candidate("loader, crop 512x512 of 1024x2048", crops, window, 0.9, many, warm),
    ]


def fastest_copies(
    of: str, loops: Sequence[CopyLoop], samples: int = PAIRS, warm: Callable[[], object] = lambda: None
) -> tuple[str, Candidate]:
    """Return the fastest of these plain loops, and its name."""
    print(f"loops that copy {of}:")
    loop = fastest(loops)
    name = f"copy of {of}: {loop.name}"
    return name, Candidate(name, loop.batches, name, 1, samples, warm)


def one_by_one(images: Any, labels: Any) -> Iterable[Tensors]:
    """Copy each row in turn into reused memory."""
    image, label = np.empty_like(images[:1]), np.empty_like(labels[:1])
    for row in range(len(images)):
        image[0], label[0] = images[row], labels[row]
        yield torch.from_numpy(image), torch.from_numpy(label)


def expanded(labels: Any) -> Iterable[Tensors]:
    out = np.empty((1, CLASSES, SIDE, SIDE), np.uint8)
    for label in labels:
        expand(label, CLASSES, out[0])
        yield torch.from_numpy(out), torch.from_numpy(out[:, :1])


def looped(dataset: SegDataset, rows: int | None = None, **options: Any) -> Callable[[], Iterable[Any]]:
    """Return a pass of a loader, or of its first `rows` rows."""
    loader = dataset.loader(BATCH, shuffle=True, **options)
    if rows is None:
        return lambda: loader
    assert rows % BATCH == 0

    def first_batches() -> Iterable[Any]:
        for number, batch in enumerate(loader, 1):
            yield batch
            if number * BATCH == rows:
                return

    return first_batches


def stock(kind: type[DataLoader[Any]], dataset: SegDataset, workers: int) -> Callable[[], Iterable[Any]]:
    """Return a pass of a DataLoader. Its workers persist, so their start is not measured."""
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": workers}
    loader = kind(dataset, **options, persistent_workers=bool(workers))
    return lambda: loader


def measure_openings(root: Path) -> None:
    """Print the time until the first batch of a pack, and until an epoch starts."""
    print()
    for rows, name in ((10**3, "thousand"), (10**7, "ten_millions")):
        seconds = typical_seconds(partial(first_batch, root / name))
        print(f"open and first batch, {rows:>13,} rows {seconds * 1e3:8.2f} ms   goal 10")
    order = Order(10**9)
    print(
        f"epoch start,          {10**9:>13,} rows {typical_seconds(lambda: next(iter(order))) * 1e3:8.2f} ms   goal 1"
    )


def first_batch(out: Path) -> Any:
    return next(iter(open_dataset(out).loader(BATCH, shuffle=True)))


def typical_seconds(act: Callable[[], Any]) -> float:
    """Return the median time of 20 calls."""
    seconds = []
    for _ in range(20):
        while any(thread.name.startswith("segpack-loader") for thread in threading.enumerate()):
            time.sleep(0.001)  # threads of the call before
        started = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def make_all(root: Path) -> None:
    """Make all data that does not exist yet."""
    if (root / "done").is_file():
        return
    dice = np.random.default_rng(0)
    make_blocks(root / "raw", PAIRS, (SIDE, SIDE), CLASSES, dice)
    make_blocks(root / "raw_wide", 120, WIDE, CLASSES, dice)
    make_blocks(root / "raw_tiny", 1000, (2, 2), CLASSES, dice)
    for storage in STORAGES:
        build(root / "raw", root / storage, storage)
    build(root / "raw_wide", root / "wide", "npy", "--size", "native")
    for name in ("thousand", "ten_millions"):
        build(root / "raw_tiny", root / name, "npy")
    repeat_shard(root / "ten_millions", 10_000)
    dataset = open_dataset(root / "npy")
    for name, part in (("images", 0), ("labels", 1)):
        shape = (PAIRS, *dataset[0][part].shape)
        out = np.lib.format.open_memmap(root / f"{name}.npy", "w+", np.uint8, shape)
        for row in range(PAIRS):
            out[row] = dataset[row][part].numpy()
    out = np.lib.format.open_memmap(root / "planes.npy", "w+", np.uint8, (320, CLASSES, SIDE, SIDE))
    for row in range(len(out)):
        out[row] = expand(dataset[row][1].numpy(), CLASSES)
    (root / "done").touch()


def build(source: Path, out: Path, storage: str, *options: str) -> None:
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--format", storage, "--labels", "index"]
    done = subprocess.run([*command, "--classes", str(CLASSES), *options, str(source), str(out)], check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"packer build {out} exited with {done.returncode}")
