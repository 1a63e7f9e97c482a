"""Packs of the same rows, stored raw, with labels as Zstandard, and with pictures as JPEG, too: size, build, reading.

    tools/run bench.encodings [--rows 600] [--builds 3] [--rounds 7] [--seconds 1.5] [--format npy] [--keep FOLDER]

Rows are street scenes of 512x512 pixels, warm in memory. Packs are built in turns; CPU time is that of the workers.
Then each round reads shuffled epochs for so many seconds of each, in an order that changes from round to round. "raw
again" shows how much two equal things differ here. The bare loop decodes the same JPEG files and unpacks the same
labels in as many threads as the loader has, and does nothing with them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import simplejpeg
import zstandard
from program import parser
from scenes.camera import make_linked_streets
from scenes.street import CLASSES
from tables import aligned

from bench.run_build import run_build
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.delivered import LabelForm
from readers.machine import usable_cores
from readers.pack import Pack

SIDE, BATCH, CROP = 512, 16, 256
ENCODINGS = {"raw": (), "zstd": ("label=zstd",), "jpeg": ("image=jpeg:95", "label=zstd")}
Rates = dict[str, list[float]]
Passes = Callable[[], Iterator[int]]
"""Each call makes a pass, and yields the rows of each batch."""
WARM_UP = 0.2
"""Seconds before each turn, in which the batches get their memory."""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=600)
    asked.add_argument("--builds", type=int, default=3)
    asked.add_argument("--rounds", type=int, default=7)
    asked.add_argument("--seconds", type=float, default=1.5)
    asked.add_argument("--format", choices=STORAGES, action="append")
    asked.add_argument("--keep", type=Path, help="a folder for the scenes, which are kept there")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        raw = root / f"streets-{options.rows}"
        if not raw.is_dir():
            make_linked_streets(raw, options.rows)
        for storage in options.format or STORAGES:
            packs = {name: root / f"{storage}-{name}" for name in ENCODINGS}
            seconds = build_all(raw, packs, storage, options.builds)
            rates = _read(packs, options.rounds, options.seconds)
            print(f"\n{storage}: {options.rows} rows of {SIDE}x{SIDE}, {usable_cores()} cores")
            for line in aligned(list(_table(packs, seconds, rates))):
                print(line, flush=True)
            for pack in packs.values():
                shutil.rmtree(pack)


def build_all(raw: Path, packs: dict[str, Path], storage: str, rounds: int) -> Rates:
    """Build each pack so many times in turns. Return the CPU seconds of each build."""
    seconds: Rates = {name: [] for name in packs}
    size = ("--size", f"{SIDE}x{SIDE}", "--classes", str(len(CLASSES)), "--labels", "index", "--format", storage)
    names = list(packs)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            out = packs[name]
            shutil.rmtree(out, ignore_errors=True)
            encode = [word for each in ENCODINGS[name] for word in ("--encode", each)]
            seconds[name].append(run_build(["build", *size, *encode, raw, out]).cpu)
    return seconds


def _read(packs: dict[str, Path], rounds: int, seconds: float) -> Rates:
    """Return the rows per second of each way to read, in each round."""
    ways: dict[str, Callable[[], Passes]] = {
        "raw": partial(_loader, packs["raw"]),
        "raw again": partial(_loader, packs["raw"]),
        "zstd": partial(_loader, packs["zstd"]),
        "raw, planes": partial(_loader, packs["raw"], "onehot"),
        "zstd, planes": partial(_loader, packs["zstd"], "onehot"),
        "raw, crop": partial(_loader, packs["raw"], crop=(CROP, CROP)),
        "zstd, crop": partial(_loader, packs["zstd"], crop=(CROP, CROP)),
        "jpeg": partial(_loader, packs["jpeg"]),
        "jpeg, bare loop": partial(_bare, packs["jpeg"]),
    }
    rates: Rates = {name: [] for name in ways}
    for number in range(rounds):
        order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
        for name in order:
            passes = ways[name]()  # what it holds is free before the next turn
            _rate(passes, WARM_UP)
            rates[name].append(_rate(passes, seconds))
            del passes
    return rates


def _rate(passes: Passes, seconds: float) -> float:
    """Return the rows per second of epochs that take so many seconds together."""
    rows, started = 0, time.perf_counter()
    while True:
        for more in passes():
            rows += more
            if (spent := time.perf_counter() - started) > seconds:
                return rows / spent


def _loader(pack: Path, label: LabelForm = "index", crop: tuple[int, int] | None = None) -> Passes:
    """Return passes of one loader, as a training makes them."""
    loader = open_dataset(pack, "all", label=label).loader(batch_size=BATCH, shuffle=True, crop=crop)
    return lambda: (len(images) for images, _ in loader)


def _bare(pack: Path) -> Passes:
    """Return passes of threads that decode the pictures of a pack, each into the same memory, and unpack its labels."""
    files, frames = _stored(pack, "image"), _stored(pack, "label")

    def unpack(start: int) -> int:
        pixels, labels = np.empty((SIDE, SIDE, 3), np.uint8), zstandard.ZstdDecompressor()
        rows = slice(start, start + BATCH)
        for file, frame in zip(files[rows], frames[rows], strict=True):
            simplejpeg.decode_jpeg(file, "RGB", buffer=pixels)
            labels.decompress(frame)
        return len(files[rows])

    def epoch() -> Iterator[int]:
        with ThreadPoolExecutor(usable_cores()) as threads:
            yield from threads.map(unpack, range(0, len(files), BATCH))

    return epoch


def _stored(path: Path, name: str) -> list[bytes]:
    """Return the stored rows of a field."""
    pack = Pack.open(path)
    (field,) = pack.select([name])
    rows = [(shard, row) for shard in range(len(pack.table)) for row in range(pack.table.rows(shard))]
    return [pack.shard(shard).stored(field, row).tobytes() for shard, row in rows]


def _table(packs: dict[str, Path], seconds: Rates, rates: Rates) -> Iterator[tuple[str, ...]]:
    pixels = Manifest.load(packs["raw"]).rows * SIDE**2
    yield "", "bytes a pixel", "build, CPU s", "of raw"
    for name, pack in packs.items():
        share = median(seconds["raw"]) / median(seconds[name])
        size = Manifest.load(pack).bytes / pixels
        yield name, f"{size:.3f}", f"{median(seconds[name]):.2f}", f"{share:.2f}"
    yield "", "rows/s", "of", "ratio"
    for name, found in rates.items():
        other = _reference(name)
        ratios = [mine / its for mine, its in zip(found, rates[other], strict=True)]
        yield name, f"{median(found):,.0f}", other, f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _reference(name: str) -> str:
    """Return the way to read that another one is compared with."""
    if name == "jpeg":
        return "jpeg, bare loop"
    encoding, *form = name.split(", ")
    return ", ".join(["raw", *form]) if encoding == "zstd" else "raw"
