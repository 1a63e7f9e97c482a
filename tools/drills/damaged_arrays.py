"""Damage files of arrays and tables anywhere, and plan and read their rows: every outcome must have words of ours.

    tools/run drills.damaged_arrays [--kind hdf5] [--count 10000] [--first 0]

libhdf5 may crash at a damaged file, or never end. Such a file is planned again as a build does it, with libhdf5 in a
process of its own: that must refuse it, unless only a worker would meet the damage. pyarrow must not crash, because it
runs in the process that plans. Exits 1 if anything else happened.
"""

from __future__ import annotations

import random
import shutil
import signal
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from program import parser

import packer.sources.library_process
from drills.damaged_packs import BROKEN, Worker
from drills.tally import Tally, finish
from packer.decoding.decode import decode_image, read_label
from packer.decoding.rules import MOST_PIXELS, ImageRules
from packer.errors import BadPair, InputError
from packer.recipe.source import ListingRules
from packer.sources.archives.hugging_face import HuggingFaceSource
from packer.sources.archives.parquet import ParquetSource
from packer.sources.arrays.hdf5_arrays import Hdf5Arrays
from packer.sources.container import Names

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


def tables(folder: Path) -> list[bytes]:
    """Return files of Parquet with and without compression, of pictures and of lists of numbers."""
    return [_parquet(folder, compression) for compression in ("snappy", "zstd", "none")]


def _table() -> pa.Table:
    pictures = (
        [cv2.imencode(".png", pixels)[1].tobytes() for pixels in field] for field in (IMAGES[..., ::-1], LABELS)
    )
    images, labels = ([{"bytes": data, "path": "a.png"} for data in field] for field in pictures)
    lists = pa.array([label.tolist() for label in LABELS], pa.list_(pa.list_(pa.uint8())))
    return pa.table({"images": images, "labels": labels, "keys": list("abcdef"), "lists": lists})


def _parquet(folder: Path, compression: str) -> bytes:
    pq.write_table(_table(), folder / "seed", compression=compression, row_group_size=4)
    return (folder / "seed").read_bytes()


def saved(folder: Path) -> list[bytes]:
    """Return a table as Hugging Face saves it."""
    with pa.ipc.new_stream(folder / "seed", _table().schema) as stream:
        stream.write_table(_table(), max_chunksize=4)
    return [(folder / "seed").read_bytes()]


class Kind(NamedTuple):
    """A kind of source: its whole files, the class that opens them here, and what of them is named."""

    seeds: Callable[[Path], list[bytes]]
    opened: Any
    names: tuple[Names, ...]


PICTURES = Names("images", "labels", "keys")
KINDS = {
    "hdf5": Kind(seeds, InThisProcess, NAMES),
    "parquet": Kind(tables, ParquetSource, (PICTURES, Names("images", "lists"))),
    "hugging-face": Kind(saved, HuggingFaceSource, (PICTURES, Names("images", "lists"))),
}


def outcome(path: Path, kind: Any, names: Names, loads: bool) -> str:
    """Plan and load all rows of a file, and name what happened. Other errors than ours are raised."""
    try:
        source = kind.at(path, names)
        listing = source.list_rows(ListingRules(path, MOST_PIXELS, keeps_unlabelled=False))
        refs = list(listing.rows)
        bad = [heads for heads in source.heads(refs) if isinstance(heads, str)]
        loaded = [source.load(ref) for ref in refs] if loads else []
    except InputError:
        return REFUSED
    if listing.problems:
        return REFUSED
    if bad or any(row.bad for row in loaded):
        return BAD
    try:
        same = len(loaded) == len(IMAGES) and all(_is_same(row.data, number) for number, row in enumerate(loaded))
    except BadPair:
        return BAD
    return SAME if same else OTHER


def _is_same(data: Sequence[Any], number: int) -> bool:
    """Return whether a row has the pixels of the whole file."""
    image = decode_image(data[0], ImageRules())
    return np.array_equal(image, IMAGES[number]) and np.array_equal(read_label(data[1]).upright_numbers, LABELS[number])


def judge(path: Path) -> str:
    """Return the outcome with the library in this process, which it may crash. The name of the file has its number."""
    kind = KINDS[path.parent.name]
    signal.alarm(SECONDS)
    try:
        return outcome(path, kind.opened, kind.names[int(path.stem) % len(kind.names)], loads=True)
    finally:
        signal.alarm(0)


def drill(name: str, first: int, count: int, folder: Path) -> Tally:
    """Count the outcomes of some cases. The same number is always the same case."""
    packer.sources.library_process.CPU_SECONDS = SECONDS
    kind, folder = KINDS[name], folder / name
    folder.mkdir()
    tally, worker, whole = Tally(), Worker(judge), kind.seeds(folder)
    for number in range(first, first + count):
        path = _write(name, folder / str(number), changed(whole[number // 4 % len(whole)], random.Random(number)))
        worker.ask(path)
        answer = worker.answer()
        if "the process ended" in answer and kind.opened is InThisProcess:
            answer = _planned(path, kind.names[number % len(kind.names)])
        tally.counts[BROKEN if answer.startswith(BROKEN) else answer] += 1
        tally.demand(not answer.startswith(BROKEN), f"case {number}: {answer}")
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    worker.close()
    return tally


def _write(kind: str, path: Path, data: bytes) -> Path:
    """Write a damaged file, or the folder of one."""
    if kind == "hugging-face":
        path.mkdir()
        (path / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
        (path / "a.arrow").write_bytes(data)
        return path
    path.write_bytes(data)
    return path


def _planned(path: Path, names: Names) -> str:
    """Return the outcome of a file at which libhdf5 crashed, if it is planned as a build does it."""
    try:
        answer = outcome(path, Hdf5Arrays, names, loads=False)
    except Exception as error:  # noqa: BLE001 - it is what the drill looks for
        return f"{BROKEN}: {error!r} after a crash"
    return CRASHED if answer == REFUSED else f"{CRASHED} at rows"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--kind", choices=KINDS, action="append", help="only this kind; may be repeated")
    options.add_argument("--count", type=int, default=10_000, help="damaged files of each kind")
    options.add_argument("--first", type=int, default=0, help="the number of the first one")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        finish({kind: drill(kind, chosen.first, chosen.count, Path(folder)) for kind in chosen.kind or KINDS})
