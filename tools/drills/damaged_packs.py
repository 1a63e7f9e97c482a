"""Damage packs by flipped bits, cuts, tails and swapped files: `verify` must find all, and readers must not crash.

    tools/run drills.damaged_packs [--flips 10000] [--cuts 1000] [--tails 200] [--swaps 50] [--format npy]

Each damaged pack is verified and read, both in processes of their own with a time limit. A reader may return data if
only pixels are damaged, because only checksums detect that. Exits 1 if `verify` misses a damage, or if a process
crashes, hangs or raises another error than ReadError. The counts are for each format; half of the packs have rows of
native size, half of the flipped bits are in the first 1024 bytes of a file.
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

from program import parser
from scenes.noise import write_noise
from tables import line

from packer.cli import main as packer
from packer.packs.verify import verify
from readers.contract.errors import ReadError
from readers.contract.manifest import STORAGES
from readers.pack import Pack

SECONDS = 30.0
FOUND, MISSED = "found by verify", "missed by verify"
REFUSED, READ = "reader refused", "reader gave data"
BROKEN = "crash, hang or other error"
Damage = Callable[[Path, random.Random], list[Path]]


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
    """Open a pack and read every row and key of it."""
    try:
        pack = Pack.open(out)
        for shard in range(len(pack.table)):
            for row in range(pack.table.rows(shard)):
                for field in pack.manifest.fields:
                    pack.shard(shard).row(field, row).sum()
                pack.shard(shard).key(row)
    except ReadError:
        return REFUSED
    return READ


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


def make_pack(folder: Path, storage: str, native: bool, encoded: bool = False) -> Path:
    """Build a pack of twelve tiny pictures in a few shards."""
    for number in range(12):
        size = (4 + number % 3, 5 + number % 4) if native else (6, 7)
        write_noise(folder / "raw", f"{number:02}", size, 3, number, labels="masks")
    options = ["--classes", "3", "--format", storage, "--shard-size", "1000B", "--workers", "1", "--quiet"]
    options += ["--size", "native"] if native else []
    options += ["--encode", "image=jpeg", "--encode", "label=zstd"] if encoded else []
    with redirect_stdout(io.StringIO()):
        packer.main(["build", *options, f"{folder}/raw", f"{folder}/out"], standalone_mode=False)
    return folder / "out"


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
    options.add_argument("--flips", type=int, default=10_000, help="flipped bits for each format")
    options.add_argument("--cuts", type=int, default=1_000)
    options.add_argument("--tails", type=int, default=200)
    options.add_argument("--swaps", type=int, default=50)
    options.add_argument("--format", choices=STORAGES, help="only this format")
    chosen = options.parse_args()
    counts = dict(zip(DAMAGES, (chosen.flips, chosen.cuts, chosen.tails, chosen.swaps), strict=True))
    columns = (FOUND, MISSED, REFUSED, READ, BROKEN)
    widths = (-15, -13, 6, *(max(18, len(column)) for column in columns))
    print(line(("format", "damage", "cases", *columns), widths))
    broken = 0
    with tempfile.TemporaryDirectory() as folder, workers() as pair:
        for storage in [chosen.format] if chosen.format else STORAGES:
            for native in (False, True):
                out = make_pack(Path(folder) / f"{storage}-{native}", storage, native)
                for damage, whole in counts.items():
                    count = (whole + native) // 2
                    found = drill(out, damage, count, pair)
                    name = f"{storage}, native" if native else storage
                    print(line((name, damage, count, *(found[column] for column in columns)), widths), flush=True)
                    broken += found[MISSED] + found[BROKEN]
    sys.exit(1 if broken else 0)
