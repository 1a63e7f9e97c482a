"""Benchmark: how fast rows come out of a pack, next to a loop that only copies them; every contender in turn.

    PYTHONPATH=tools python -m bench.reading [--rounds 7] [--only loader] [--keep FOLDER]

1,200 pairs of 512x512 (uint8 image, 12 classes), batches of 16, shuffled, page cache warm. The copy loop is
`torch.index_select` of mapped rows into one reused buffer, on all cores: what memory gives. Its rate in the same round
is what each contender is divided by; the ratios are what counts. Each contender first proves its work: the sum of all
bytes that it delivered must be that of the rows.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

# Where others use the machine too, threads of torch that spin while they wait make the copy loop crawl.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch
from torch.utils.data import DataLoader

from readers import Order, SegDataset, SlotDataLoader, open_dataset
from readers.contract.manifest import MANIFEST, STORAGES, Manifest, generation_path
from readers.contract.onehot import expand
from readers.contract.shard_table import table_path

PAIRS, SIDE, CLASSES, BATCH, DISTINCT = 1200, 512, 12, 16, 24
WIDE = (1024, 2048)
Tensors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Contender:
    """A way to read: a pass that yields batches; its figure, and the reference that it is divided by."""

    name: str
    batches: Callable[[], Iterable[Any]]
    reference: str
    goal: float
    samples: int = PAIRS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="Contenders whose names have this in them.")
    parser.add_argument("--keep", type=Path, help="Where the data is made, and left for the next time.")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # torch on mapped memory that is read-only
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        make_all(root)
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, Python {sys.version.split()[0]}"
        )
        print(f"torch {torch.__version__}, numpy {np.__version__}, {torch.get_num_threads()} threads of torch\n")
        table = [one for one in contenders(root) if one.reference == one.name or chosen.only in one.name]
        report(table, measured(table, chosen.rounds))
        openings(root)


def measured(table: list[Contender], rounds: int) -> dict[str, list[float]]:
    """Samples per second of each in each round; round 0 proves the work and warms up."""
    rates: dict[str, list[float]] = {one.name: [] for one in table}
    sums: dict[str, int] = {}
    for number in range(rounds + 1):
        for one in table:
            started, samples, total = time.perf_counter(), 0, 0
            for batch in one.batches():
                samples += len(batch[0])
                total += int(batch[0][-1].view(-1)[-1]) if number else sum(int(part.numpy().sum()) for part in batch)
            if number:
                rates[one.name].append(samples / (time.perf_counter() - started))
            else:
                prove(one, samples, total, sums)
    return rates


def prove(one: Contender, samples: int, total: int, sums: dict[str, int]) -> None:
    """Whoever delivers all pairs as they are must deliver the bytes that the copy loop copies."""
    known = sums.setdefault("pairs", total) if one.samples == PAIRS else total
    if samples != one.samples or total != known:
        raise SystemExit(f"{one.name}: {samples} samples with a sum of {total}, expected {one.samples} with {known}")
    print(f"  {one.name:44}{samples:6} samples, sum of their bytes {total}", flush=True)


def report(table: list[Contender], rates: dict[str, list[float]]) -> None:
    print(f"\n{'':44}{'samples/s':>10}{'least':>8}{'most':>8}{'ratio':>8}{'least':>7}{'most':>7}{'goal':>7}")
    for one in table:
        mine = rates[one.name]
        ratios = [rate / other for rate, other in zip(mine, rates[one.reference], strict=True)]
        line = f"{one.name:44}{statistics.median(mine):10.0f}{min(mine):8.0f}{max(mine):8.0f}"
        if one.reference != one.name:
            line += f"{statistics.median(ratios):8.2f}{min(ratios):7.2f}{max(ratios):7.2f}{one.goal:7.2f}"
        print(line)


def contenders(root: Path) -> list[Contender]:
    copy, single, planes, window = (
        "copy loop, all cores",
        "copy of each row, 1 thread",
        "copy of planes",
        "copy of crops' bytes",
    )
    images, labels = (np.load(root / f"{name}.npy", mmap_mode="r") for name in ("images", "labels"))
    stored = np.load(root / "planes.npy", mmap_mode="r")
    npy = open_dataset(root / "npy")
    wide = open_dataset(root / "wide")
    few = len(stored)
    return [
        Contender(copy, lambda: copied(images, labels), copy, 1),
        *(Contender(f"loader, {storage}", looped(open_dataset(root / storage)), copy, 0.9) for storage in STORAGES),
        Contender("DataLoader, 0 workers", stock(DataLoader, npy, 0), copy, 0.65),
        Contender("DataLoader, 2 workers", stock(DataLoader, npy, 2), copy, 0.13),
        Contender("SlotDataLoader, 2 workers", stock(SlotDataLoader, npy, 2), copy, 0.6),
        Contender(single, lambda: one_by_one(images, labels), single, 1),
        Contender("dataset[i]", lambda: ([part[None] for part in npy[row]] for row in range(PAIRS)), single, 0.7),
        Contender(planes, lambda: one_by_one(stored, stored[:, :1]), planes, 1, few),
        Contender("one-hot of index, labels alone, 1 thread", lambda: expanded(labels[:few]), planes, 2, few),
        Contender(
            "copy loop, images and stored planes",
            lambda: copied(images[:few], stored),
            "copy loop, images and stored planes",
            1,
            few,
        ),
        Contender(
            "loader, one-hot of index",
            looped(npy, labels="onehot", rows=few),
            "copy loop, images and stored planes",
            1,
            few,
        ),
        Contender(window, lambda: copied(images[: len(wide)], labels[: len(wide)]), window, 1, len(wide)),
        Contender("loader, crop 512x512 of 1024x2048", looped(wide, crop=(SIDE, SIDE)), window, 0.6, len(wide)),
    ]


def copied(images: Any, labels: Any) -> Iterable[Tensors]:
    """The copy loop."""
    sources = torch.from_numpy(images), torch.from_numpy(labels)
    buffers = [torch.empty((BATCH, *source.shape[1:]), dtype=torch.uint8) for source in sources]
    order = torch.randperm(len(images))
    for first in range(0, len(images), BATCH):
        rows = order[first : first + BATCH]
        parts = [buffer[: len(rows)] for buffer in buffers]
        for source, part in zip(sources, parts, strict=True):
            torch.index_select(source, 0, rows, out=part)
        yield parts[0], parts[1]


def one_by_one(images: Any, labels: Any) -> Iterable[Tensors]:
    """One copy of each row in turn, into reused memory."""
    image, label = np.empty_like(images[:1]), np.empty_like(labels[:1])
    for row in range(len(images)):
        image[0], label[0] = images[row], labels[row]
        yield torch.from_numpy(image), torch.from_numpy(label)


def expanded(labels: Any) -> Iterable[Tensors]:
    out = np.empty((1, CLASSES, SIDE, SIDE), np.uint8)
    for label in labels:
        expand(label[None], CLASSES, out)
        yield torch.from_numpy(out), torch.from_numpy(out[:, :1])


def looped(dataset: SegDataset, rows: int | None = None, **options: Any) -> Callable[[], Iterable[Any]]:
    """Passes of a loader; with `rows`, only so many."""
    loader = dataset.loader(BATCH, shuffle=True, **options)
    if rows is None:
        return lambda: loader
    assert rows % BATCH == 0

    def some() -> Iterable[Any]:
        for number, batch in enumerate(loader, 1):
            yield batch
            if number * BATCH == rows:
                return

    return some


def stock(kind: type[DataLoader[Any]], dataset: SegDataset, workers: int) -> Callable[[], Iterable[Any]]:
    """Passes of a DataLoader; its workers stay, so that starting them is not what is measured."""
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": workers}
    loader = kind(dataset, **options, persistent_workers=bool(workers))
    return lambda: loader


def openings(root: Path) -> None:
    """Opening a pack and its first batch, and starting an epoch."""
    print()
    for rows, name in ((10**3, "thousand"), (10**7, "ten_millions")):
        seconds = least(partial(first_batch, root / name))
        print(f"open and first batch, {rows:>13,} rows {seconds * 1e3:8.2f} ms   goal 10")
    order = Order(10**9)
    print(f"epoch start,          {10**9:>13,} rows {least(lambda: next(iter(order))) * 1e3:8.2f} ms   goal 1")


def first_batch(out: Path) -> Any:
    return next(iter(open_dataset(out).loader(BATCH, shuffle=True)))


def least(act: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(20):
        while any(thread.name.startswith("segpack-loader") for thread in threading.enumerate()):
            time.sleep(0.001)  # of the time before
        started = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def make_all(root: Path) -> None:
    """Everything that is not there yet."""
    if (root / "done").is_file():
        return
    dice = np.random.default_rng(0)
    raw(root / "raw", PAIRS, (SIDE, SIDE), dice)
    raw(root / "raw_wide", 120, WIDE, dice)
    raw(root / "raw_tiny", 1000, (2, 2), dice)
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


def raw(folder: Path, pairs: int, size: tuple[int, int], dice: np.random.Generator) -> None:
    """Pairs of few different pictures: what is copied costs the same whatever it shows."""
    height, width = size
    for number in range(pairs):
        first = number % DISTINCT
        for kind, suffix in (("images", ".bmp"), ("labels", ".png")):
            path = folder / kind / f"{number:05}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if number != first:
                path.hardlink_to(path.with_name(f"{first:05}{suffix}"))
            elif kind == "images":
                cv2.imwrite(str(path), dice.integers(0, 256, (height, width, 3), np.uint8))
            else:
                blocks = dice.integers(0, CLASSES, (-(-height // 16), -(-width // 16)), np.uint8)
                cv2.imwrite(str(path), np.kron(blocks, np.ones((16, 16), np.uint8))[:height, :width])


def build(source: Path, out: Path, storage: str, *options: str) -> None:
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--format", storage, "--labels", "index"]
    done = subprocess.run([*command, "--classes", str(CLASSES), *options, str(source), str(out)], check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"packer build {out} ended with {done.returncode}")


def repeat_shard(out: Path, times: int) -> None:
    """Make a pack of one shard say that it has this shard `times` over."""
    manifest = Manifest.load(out)
    records = np.repeat(np.load(table_path(out, manifest.table)), times)
    records["end"] = manifest.rows * np.arange(1, times + 1, dtype=np.uint64)
    buffer = io.BytesIO()
    np.save(buffer, records)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    table_path(out, digest).write_bytes(buffer.getvalue())
    split = replace(manifest.splits[0], rows=manifest.rows * times, shards=times)
    text = replace(manifest, splits=(split,), table=digest).to_text()
    generation_path(out, 1).write_text(text)
    (out / MANIFEST).write_text(text)


if __name__ == "__main__":
    main()
