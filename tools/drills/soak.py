"""Run many nightly builds in one process, with a reader that opens each pack; memory, files and disk must not grow.

    tools/run drills.soak [--nights 200]

Each night changes a few pictures, builds, rolls back and forth, and deletes all but three generations: first with a
grace, which must keep what was current a moment ago, although its manifest is old, then without. Exits 1 if a process
has more open files or a tenth more memory than at the first report, or if a file is left that no kept generation needs.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from program import parser
from scenes.noise import write_noise
from scenes.pictures import LONG_AGO

import readers
from drills.damaged_packs import BROKEN, Worker
from packer.cli import main as packer
from packer.publish.history import HISTORY
from packer.publish.remarks import remarks_path
from packer.publish.target import STAMPS
from readers.contract.manifest import CELLS, GENERATIONS, MANIFEST, SHARDS, Manifest, generation_path
from readers.contract.shard_table import table_path
from readers.pack import Pack

PICTURES, CHANGED, KEPT = 40, 3, 3
REPORTS = (10, 50, 100, 150, 200)
MORE_MEMORY = 1.1


@dataclass(frozen=True)
class Use:
    """The open files and the memory of a process."""

    descriptors: int
    memory: int

    @classmethod
    def now(cls) -> Use:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(len(list(Path("/proc/self/fd").iterdir())), pages * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True)
class Report:
    """The state after a night."""

    night: int
    packer: Use
    reader: Use
    files: int
    bytes: int
    unneeded: tuple[str, ...]

    def line(self) -> str:
        uses = "".join(f"{use.descriptors:>12}{use.memory / 2**20:>9.1f} MiB" for use in (self.packer, self.reader))
        return f"{self.night:>5}{uses}{self.files:>8}{self.bytes:>10}{len(self.unneeded):>10}"


@dataclass
class Reader:
    """A reader of the whole pack that keeps the generations of earlier nights open, as trainings may."""

    opened: deque[readers.SegDataset] = field(default_factory=lambda: deque(maxlen=KEPT))

    def __call__(self, out: Path) -> str:
        dataset = readers.open_dataset(out)  # imports torch, which the other process does not need
        rows = sum(1 for _ in dataset)
        self.opened.append(dataset)
        for other in self.opened:
            other[len(other) - 1]
        use = Use.now()
        return f"{rows} {use.descriptors} {use.memory}"


def soak(folder: Path, nights: int, reports: tuple[int, ...]) -> Iterator[Report]:
    """Run the nights, and yield the state after those of `reports`."""
    raw, out = folder / "raw", folder / "out"
    for number in range(PICTURES):
        change(raw, number, 0)
    with closing(Worker(Reader())) as reader:
        for night in range(1, nights + 1):
            for step in range(CHANGED):
                change(raw, (CHANGED * night + step) % PICTURES, night)
            command("build", "--classes", "4", "--shard-size", "6KB", "--workers", "2", "--quiet", raw, out)
            check_grace(out)
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
    """Write another image and label under the same name."""
    write_noise(raw, f"{number:03}", (16, 16), 4, (number, night), labels="masks")


def check_grace(out: Path) -> None:
    """Roll back to an older generation and to the newest again: gc must keep the older one for its grace."""
    numbers = sorted(int(path.stem) for path in (out / GENERATIONS).glob("*.json"))
    for path in (out / GENERATIONS).iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    for number in (numbers[0], numbers[-1]):
        command("rollback", out, number)
    command("gc", "--keep", "1", "--grace", "1h", out)
    if not generation_path(out, numbers[0]).is_file():
        raise RuntimeError(f"gc deleted generation {numbers[0]}, which was current a moment ago")


def command(*words: object) -> None:
    with redirect_stdout(io.StringIO()):
        packer.main([str(word) for word in words], standalone_mode=False)


def unneeded(out: Path) -> set[str]:
    """Return the files that no kept generation names and that the packer does not need itself."""
    needed = {out / name for name in (".segpack", ".lock", "packer.toml", HISTORY, MANIFEST)}
    kept = sorted((out / GENERATIONS).glob("*.json"))
    stems = set()
    for path in kept[-KEPT:]:
        manifest = Manifest.read(out, path)
        pack = Pack(out, manifest)
        needed |= {path, table_path(out, manifest.table)}
        stems |= {pack.stem(shard).name for shard in range(len(pack.table))}
    needed |= {remarks_path(out, int(path.stem)) for path in kept[-KEPT:]}
    written = (path for name in (SHARDS, STAMPS, CELLS) for path in (out / name).iterdir())
    needed |= {path for path in written if path.name.split(".")[0] in stems}
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path not in needed}


def is_flat(first: Report, last: Report) -> bool:
    """Check that nothing has grown between two reports."""
    uses = ((first.packer, last.packer), (first.reader, last.reader))
    return not last.unneeded and all(
        after.descriptors <= before.descriptors and after.memory <= MORE_MEMORY * before.memory
        for before, after in uses
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nights", type=int, default=REPORTS[-1])
    nights = options.parse_args().nights
    print(f"{'':5}{'packer':>25}{'reader':>25}{'disk':>18}")
    print(f"night{'descriptors':>12}{'memory':>13}{'descriptors':>12}{'memory':>13}{'files':>8}{'bytes':>10}  unneeded")
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for report in soak(Path(folder), nights, (*REPORTS, nights)):
            print(report.line(), flush=True)
            reports.append(report)
    sys.exit(0 if is_flat(reports[0], reports[-1]) else 1)
