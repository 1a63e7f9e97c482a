"""Drill: many nights in one process, with a reader that keeps opening; descriptors, memory and disk must stay flat.

    python tools/drills/soak.py [--nights 200]

Each night changes a few pictures, builds, and deletes all but three generations. Exits 1 if after the first report a
process has more descriptors or a tenth more memory, or if a file is left that no kept generation needs.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

import readers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from drills.damage import BROKEN, Worker
from packer.cli import main as packer
from packer.publish.target import STAMPS
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, Manifest
from readers.contract.shard_table import table_path
from readers.pack import Pack

PICTURES, CHANGED, KEPT = 40, 3, 3
REPORTS = (10, 50, 100, 150, 200)
MORE_MEMORY = 1.1


@dataclass(frozen=True)
class Use:
    """What a process holds."""

    descriptors: int
    memory: int

    @classmethod
    def now(cls) -> Use:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(len(list(Path("/proc/self/fd").iterdir())), pages * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True)
class Report:
    """How things are after a night."""

    night: int
    packer: Use
    reader: Use
    files: int
    bytes: int
    unneeded: tuple[str, ...]

    def line(self) -> str:
        uses = "".join(f"{one.descriptors:>12}{one.memory / 2**20:>9.1f} MiB" for one in (self.packer, self.reader))
        return f"{self.night:>5}{uses}{self.files:>8}{self.bytes:>10}{len(self.unneeded):>10}"


@dataclass
class Reader:
    """Opens the pack and reads all of it, while it has the generations of earlier nights open, as trainings may."""

    opened: deque[readers.SegDataset] = field(default_factory=lambda: deque(maxlen=KEPT))

    def __call__(self, out: Path) -> str:
        dataset = readers.open_dataset(out)  # torch comes now, and not with every worker, which imports this file
        rows = sum(1 for _ in dataset)
        self.opened.append(dataset)
        for other in self.opened:
            other[len(other) - 1]
        use = Use.now()
        return f"{rows} {use.descriptors} {use.memory}"


def soak(folder: Path, nights: int, reports: tuple[int, ...]) -> Iterator[Report]:
    """Live through the nights; tell how things are after those of `reports`."""
    raw, out = folder / "raw", folder / "out"
    for kind in ("images", "masks"):
        (raw / kind).mkdir(parents=True)
    for number in range(PICTURES):
        change(raw, number, 0)
    with closing(Worker(Reader())) as reader:
        for night in range(1, nights + 1):
            for step in range(CHANGED):
                change(raw, (CHANGED * night + step) % PICTURES, night)
            command("build", "--classes", "4", "--shard-size", "6KB", "--workers", "2", "--quiet", raw, out)
            command("gc", "--keep", KEPT, "--grace", "0s", out)
            reader.ask(out)
            answer = reader.answer()
            if answer.startswith(BROKEN):
                raise RuntimeError(answer)
            rows, descriptors, memory = map(int, answer.split())
            assert rows == PICTURES
            if night in reports:
                files = [path for path in out.rglob("*") if path.is_file()]
                size = sum(path.stat().st_size for path in files)
                use = Use(descriptors, memory)
                yield Report(night, Use.now(), use, len(files), size, tuple(sorted(unneeded(out))))


def change(raw: Path, number: int, night: int) -> None:
    """Another picture and label by the same names."""
    dice = np.random.default_rng((number, night))
    for kind, most, shape in (("images", 256, (16, 16, 3)), ("masks", 4, (16, 16))):
        cv2.imwrite(f"{raw}/{kind}/{number:03d}.png", dice.integers(0, most, shape, np.uint8))


def command(*words: object) -> None:
    with redirect_stdout(io.StringIO()):
        packer.main([str(word) for word in words], standalone_mode=False)


def unneeded(out: Path) -> set[str]:
    """Files that neither a kept generation names nor the packer keeps for itself."""
    needed = {out / name for name in (".segpack", ".lock", "packer.toml", MANIFEST)}
    kept = sorted((out / GENERATIONS).glob("*.json"))
    stems = set()
    for path in kept[-KEPT:]:
        manifest = Manifest.read(out, path)
        pack = Pack(out, manifest)
        needed |= {path, table_path(out, manifest.table)}
        stems |= {pack.stem(shard).name for shard in range(len(pack.table))}
    needed |= {path for name in (SHARDS, STAMPS) for path in (out / name).iterdir() if path.name.split(".")[0] in stems}
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path not in needed}


def is_flat(first: Report, last: Report) -> bool:
    """Whether nothing has grown from one report to another."""
    uses = ((first.packer, last.packer), (first.reader, last.reader))
    return not last.unneeded and all(
        after.descriptors <= before.descriptors and after.memory <= MORE_MEMORY * before.memory
        for before, after in uses
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=REPORTS[-1])
    nights = parser.parse_args().nights
    print(f"{'':5}{'packer':>25}{'reader':>25}{'disk':>18}")
    print(f"night{'descriptors':>12}{'memory':>13}{'descriptors':>12}{'memory':>13}{'files':>8}{'bytes':>10}  unneeded")
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for report in soak(Path(folder), nights, (*REPORTS, nights)):
            print(report.line(), flush=True)
            reports.append(report)
    sys.exit(0 if is_flat(reports[0], reports[-1]) else 1)


if __name__ == "__main__":
    main()
