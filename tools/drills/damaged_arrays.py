"""Damage HDF5 files anywhere, also their metadata, and plan and read their rows: every outcome must have words of ours.

    tools/run drills.damaged_arrays [--count 10000] [--first 0]

libhdf5 may crash at a damaged file, or never end. Such a file is planned again as a build does it, with libhdf5 in a
process of its own: that must refuse it, unless only a worker would meet the damage. Exits 1 if anything else happened.
"""

from __future__ import annotations

import random
import signal
import struct
import tempfile
from pathlib import Path

import h5py
import numpy as np
from program import parser

import packer.sources.library_process
from drills.damaged_packs import BROKEN, Worker
from drills.tally import Tally, finish
from packer.errors import InputError
from packer.sources.container import Names
from packer.sources.hdf5_arrays import Hdf5Arrays

SECONDS = 3
"""The longest time of a case. Most take a millisecond."""
NUMBERS = (0, 1, 2**32, 2**40, 2**63 - 1, 2**64 - 1)
IMAGES = np.random.default_rng(7).integers(0, 256, (6, 10, 14, 3), np.uint8)
LABELS = IMAGES[..., 0] % 3
REFUSED, CRASHED, BAD, SAME, OTHER = "refused", "libhdf5 crashed", "bad rows", "same rows", "other rows"
NAMES = (
    Names("images", "labels", "keys"),
    Names("images", "groups/more", "fixed"),
    Names("compressed", "labels"),
    Names("compressed", "missing"),
)


class InThisProcess(Hdf5Arrays):
    """Opens HDF5 files in the process that calls it."""

    may_crash = False


def seeds(folder: Path) -> list[bytes]:
    """Return files of the oldest and of the newest version of the format, with data sets of all layouts."""
    found = []
    for version in ("earliest", "latest"):
        path = folder / "seed.h5"
        with h5py.File(path, "w", libver=version) as file:
            file["images"] = IMAGES
            file.create_dataset(
                "compressed", data=IMAGES, chunks=(4, 5, 14, 3), compression="lzf", maxshape=(None,) * 4
            )
            file.create_dataset("labels", data=LABELS, chunks=(2, 5, 14), compression="gzip", shuffle=True)
            file.create_dataset("groups/more", data=LABELS, chunks=(1, 10, 14), fletcher32=True)
            file["keys"], file["fixed"] = np.array(list("abcdef"), object), np.array(list("fedcba"), "S3")
            file["images"].attrs["unit"] = "lux"
        found.append(path.read_bytes())
    return found


def changed(seed: bytes, dice: random.Random) -> bytes:
    """Return a file with some bytes, or numbers of eight bytes, that are others; sometimes cut."""
    data = bytearray(seed)
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        at, other = dice.randrange(len(data)), dice.randrange(len(data))
        match dice.randrange(5):
            case 0:
                data[at] ^= 1 << dice.randrange(8)
            case 1:
                data[at] = dice.randrange(256)
            case 2:
                data[at] = dice.choice((0, 1, 127, 128, 255))
            case 3:
                number = dice.choice((*NUMBERS, other, len(data), len(data) - 8))
                data[at & ~7 : (at & ~7) + 8] = struct.pack("<Q", number)
            case _:
                size = dice.choice((2, 4, 8, 16))
                data[at : at + size] = data[other : other + size]
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.02 else data)


def outcome(path: Path, kind: type[Hdf5Arrays], names: Names) -> str:
    """Plan and load all rows of a file, and name what happened. Other errors than ours are raised."""
    try:
        source = kind.at(path, names)
        refs = list(source.rows())
        loaded = [source.load(ref) for ref in refs] if kind is InThisProcess else []
    except InputError:
        return REFUSED
    if any(row.bad for row in loaded):
        return BAD
    same = len(loaded) == len(IMAGES) and all(
        np.array_equal(field, whole[number])
        for number, row in enumerate(loaded)
        for field, whole in zip(row.data, (IMAGES, LABELS), strict=True)
    )
    return SAME if same else OTHER


def judge(path: Path) -> str:
    """Return the outcome with the library in this process, which it may crash. The name of the file has its number."""
    signal.alarm(SECONDS)
    try:
        return outcome(path, InThisProcess, NAMES[int(path.stem) % len(NAMES)])
    finally:
        signal.alarm(0)


def drill(first: int, count: int, folder: Path) -> Tally:
    """Count the outcomes of some cases. The same number is always the same case."""
    packer.sources.library_process.CPU_SECONDS = SECONDS
    tally, worker, whole = Tally(), Worker(judge), seeds(folder)
    for number in range(first, first + count):
        dice, path = random.Random(number), folder / f"{number}.h5"
        path.write_bytes(changed(whole[number // len(NAMES) % len(whole)], dice))
        worker.ask(path)
        answer = worker.answer()
        if "the process ended" in answer:
            try:
                answer = f"{CRASHED}, {outcome(path, Hdf5Arrays, NAMES[number % len(NAMES)])}"
                answer = CRASHED if answer.endswith(REFUSED) else f"{CRASHED} at rows"
            except Exception as error:  # noqa: BLE001 - it is what the drill looks for
                answer = f"{BROKEN}: {error!r} after a crash"
        tally.counts[BROKEN if answer.startswith(BROKEN) else answer] += 1
        tally.demand(not answer.startswith(BROKEN), f"case {number}: {answer}")
        path.unlink()
    worker.close()
    return tally


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=10_000, help="damaged files")
    options.add_argument("--first", type=int, default=0, help="the number of the first one")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        finish({"hdf5": drill(chosen.first, chosen.count, Path(folder))})
