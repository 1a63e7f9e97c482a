"""Damage packs by flipped bits, cuts, tails and swapped files: `verify` must find all, and readers must not crash.

    tools/run drills.damaged_packs [--flips 5000] [--cuts 500] [--tails 100] [--swaps 25] [--format npy] [--form tiles]

Each damaged pack is verified and read, both in processes of their own with a time limit. A reader may return data if
only pixels are damaged, because only checksums detect that. Exits 1 if `verify` misses a damage, or if a process
crashes, hangs or raises another error than ReadError. The counts are for each pack: there is one of
each format and form of rows. Half of the flipped bits are in the first 1024 bytes of a file.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser
from scenes.noise import write_noise
from tables import line

from drills.volumes import nifti
from packer.cli import main as packer
from packer.packs.verify import verify
from readers.contract.errors import ReadError
from readers.contract.fields import Field, Sides
from readers.contract.manifest import STORAGES
from readers.formats.shard import Shard
from readers.pack import Pack

SECONDS = 30.0
FOUND, MISSED = "found by verify", "missed by verify"
REFUSED, READ = "reader refused", "reader gave data"
BROKEN = "crash, hang or other error"
Damage = Callable[[Path, random.Random], list[Path]]
FORMS: dict[str, tuple[str, ...]] = {
    "one size": (),
    "native": ("--size", "native"),
    "encoded": ("--encode", "image=jpeg", "--encode", "label=zstd"),
    "tiles": ("--size", "native", "--encode", "image=tiles:16", "--encode", "label=tiles-zstd:16"),
    "volumes": ("--volumes", "--image-range", "0,255", "--encode", "label=tiles:1x16x16"),
}
"""The options for each form of rows."""
SMALLEST = {"native": (4, 5), "tiles": (17, 18), "volumes": (17, 18)}
"""The height and width of the smallest row, if they differ. Of 17 by 18 pixels a tile of 16 leaves something."""


@dataclass
class Worker:
    """A process that runs one function on many paths. It is replaced when it crashes or takes too long."""

    task: Callable[[Path], str]
    process: multiprocessing.process.BaseProcess | None = None
    pipe: Connection | None = None

    def ask(self, path: Path) -> None:
        """Start the function on a pack. `answer` waits for the result."""
        if self.process is None or self.pipe is None:
            context = multiprocessing.get_context("forkserver")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs, self.task), daemon=True)
            self.process.start()
            theirs.close()
        self.pipe.send(path)

    def answer(self) -> str:
        """Return the result of the function, or BROKEN and the reason if the process crashed or hung."""
        assert self.process is not None
        assert self.pipe is not None
        try:
            if self.pipe.poll(SECONDS):
                return str(self.pipe.recv())
        except (EOFError, OSError):
            pass
        process = self.process
        self.close()
        return f"{BROKEN}: the process ended or hung ({process.exitcode})"

    def close(self) -> None:
        if self.process is not None and self.pipe is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = self.pipe = None


def _serve(pipe: Connection, task: Callable[[Path], str]) -> None:
    while True:
        try:
            path = pipe.recv()
        except EOFError:
            return
        try:
            answer = task(path)
        except Exception as error:  # noqa: BLE001 - to be counted, whatever it is
            answer = f"{BROKEN}: {error!r}"
        pipe.send(answer)


def verified(out: Path) -> str:
    try:
        return FOUND if verify(out, 1, lambda _: None) else MISSED
    except ReadError:
        return FOUND


def read(out: Path) -> str:
    """Open a pack and read all of it."""
    try:
        read_all(Pack.open(out))
    except ReadError:
        return REFUSED
    return READ


def read_all(pack: Pack) -> None:
    """Read every row and key of a pack, and a window of every row."""
    for shard in range(len(pack.table)):
        for row in range(pack.table.rows(shard)):
            for field in pack.manifest.fields:
                pack.shard(shard).row(field, row).sum()
                window(pack.shard(shard), field, row).sum()
            pack.shard(shard).key(row)


def window(shard: Shard, field: Field, row: int) -> NDArray[Any]:
    """Return the last half of each side of a row."""
    return shard.window(field, row, tuple(slice(side // 2, side) for side in shard.size(row)))


def flip(out: Path, dice: random.Random) -> list[Path]:
    path = dice.choice(_files(out))
    data = bytearray(path.read_bytes())
    bit = dice.randrange(8 * (len(data) if dice.random() < 0.5 else min(len(data), 1024)))  # headers are short
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return [path]


def cut(out: Path, dice: random.Random) -> list[Path]:
    path = dice.choice(_files(out))
    path.write_bytes(path.read_bytes()[: dice.randrange(path.stat().st_size)])
    return [path]


def tail(out: Path, dice: random.Random) -> list[Path]:
    path = dice.choice(_files(out))
    path.write_bytes(path.read_bytes() + dice.randbytes(dice.choice([1, 64, 4096])))
    return [path]


def swap(out: Path, dice: random.Random) -> list[Path]:
    """Swap two files of the same type."""
    kinds: dict[str, list[Path]] = {}
    for path in (out / "shards").iterdir():
        kinds.setdefault(path.name.partition(".")[2], []).append(path)
    first, second = dice.sample(sorted(dice.choice(sorted(kinds.values()))), 2)
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    return [first, second]


DAMAGES: dict[str, Damage] = {"bit flipped": flip, "cut": cut, "tail": tail, "swapped": swap}


def _files(out: Path) -> list[Path]:
    return sorted(path for folder in (out, out / "generations", out / "shards") for path in _plain(folder))


def _plain(folder: Path) -> Iterator[Path]:
    return (
        path for path in folder.iterdir() if path.is_file() and path.name not in (".segpack", ".lock", "packer.toml")
    )


def make_pack(folder: Path, storage: str, form: str = "one size") -> Path:
    """Build a pack of twelve tiny pictures or volumes in a few shards."""
    raw, (height, width) = folder / "raw", SMALLEST.get(form, (6, 7))
    for number in range(12):
        size = (height + number % 3, width + number % 4) if form in SMALLEST else (height, width)
        if form == "volumes":
            _write_volume(raw, f"{number:02}", (2, *size), number)
        else:
            write_noise(raw, f"{number:02}", size, 3, number, labels="masks")
    shard = "1000B" if height < 16 else "5000B"
    options = ["--classes", "3", "--format", storage, "--shard-size", shard, "--workers", "1", "--quiet", *FORMS[form]]
    source = ["--from"] if form == "volumes" else []
    with redirect_stdout(io.StringIO()):
        packer.main(["build", *options, *source, f"{raw}", f"{folder}/out"], standalone_mode=False)
    return folder / "out"


def _write_volume(raw: Path, key: str, sides: Sides, seed: int) -> None:
    dice = np.random.default_rng(seed)
    for name, values in (("imagesTr", 256), ("labelsTr", 3)):
        (raw / name).mkdir(parents=True, exist_ok=True)
        (raw / name / f"{key}.nii").write_bytes(nifti(dice.integers(0, values, sides, np.uint8).T))


@contextmanager
def workers() -> Iterator[tuple[Worker, Worker]]:
    both = Worker(verified), Worker(read)
    try:
        yield both
    finally:
        for worker in both:
            worker.close()


def drill(out: Path, damage: str, count: int, pair: tuple[Worker, Worker]) -> Counter[str]:
    """Damage a pack `count` times, the same way in every run, and restore it each time."""
    dice, found = random.Random(f"{out.name} {damage}"), Counter[str]()
    whole = {path: path.read_bytes() for path in _files(out)}
    for _ in range(count):
        touched = DAMAGES[damage](out, dice)
        for worker in pair:
            worker.ask(out)
        for worker in pair:
            answer = worker.answer()
            if answer.startswith(BROKEN) or answer == MISSED:
                print(f"{out} {damage} of {', '.join(path.name for path in touched)}: {answer}", file=sys.stderr)
            found[answer.partition(":")[0]] += 1
        for path in touched:
            path.write_bytes(whole[path])
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--flips", type=int, default=5_000, help="flipped bits for each pack")
    options.add_argument("--cuts", type=int, default=500)
    options.add_argument("--tails", type=int, default=100)
    options.add_argument("--swaps", type=int, default=25)
    options.add_argument("--format", choices=STORAGES, help="only this format")
    options.add_argument("--form", choices=FORMS, help="only this form of rows")
    chosen = options.parse_args()
    counts = dict(zip(DAMAGES, (chosen.flips, chosen.cuts, chosen.tails, chosen.swaps), strict=True))
    columns = (FOUND, MISSED, REFUSED, READ, BROKEN)
    widths = (-18, -13, 6, *(max(18, len(column)) for column in columns))
    print(line(("format", "damage", "cases", *columns), widths))
    broken = 0
    with tempfile.TemporaryDirectory() as folder, workers() as pair:
        for storage in [chosen.format] if chosen.format else STORAGES:
            for form in [chosen.form] if chosen.form else FORMS:
                out = make_pack(Path(folder) / f"{storage} {form}", storage, form)
                for damage, count in counts.items():
                    found = drill(out, damage, count, pair)
                    cells = f"{storage}, {form}", damage, count, *(found[column] for column in columns)
                    print(line(cells, widths), flush=True)
                    broken += found[MISSED] + found[BROKEN]
    sys.exit(1 if broken else 0)
