"""`packer build` in every format, next to a loop that decodes, resizes and maps to classes, and writes nothing.

    tools/run bench.building [--pairs 400] [--rounds 5] [--shape cityscapes] [--kernels] [--colours] [--labels onehot]
                             [--scaling | --memory] [--keep FOLDER]

Decode loops and builds take turns. The rate of a build is divided by the mean of the loops before and after it.
*pairs/s* counts from the first shard that is handed out to the last receipt, *command* the whole command. *cpu* is the
CPU time of the workers for a pair. The bench fails if a pack differs from what the decode loop made.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from program import parser
from scenes.camera import STREET, make_linked_streets
from scenes.shapes import SHAPES, Shape
from scenes.street import CLASSES
from tables import aligned, line

from bench.decode_loop import Checksums, Decoded, decode_loop
from bench.machine import PACKER_PACKAGES, machine, versions
from bench.run_build import BuildRun, run_build
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.machine import usable_cores

SHARD = 32 << 20
MIB = 1 << 20
SMALL = Shape(96, 128)
"""The shape of pictures when memory is measured: many pairs, little to decode."""
LOOP = "decode loop"
WIDTHS = (-12, 16, 16, 8)
"""Columns of the tables of --scaling and --memory."""


@dataclass(frozen=True)
class Workload:
    """A raw folder, the pack that is built from it, and the form of its labels."""

    raw: Path
    out: Path
    pairs: int
    colours: bool
    labels: str = "index"
    shape: Shape = STREET
    kernels: bool = False

    def loop(self, workers: int) -> Decoded:
        """Run the decode loop, by libraries or by kernels."""
        return decode_loop(self.raw, self.pairs, workers, self.colours, shape=self.shape, kernels=self.kernels)

    @cached_property
    def checksums(self) -> tuple[Checksums, ...]:
        """The CRCs of each pair in the decode loop."""
        return decode_loop(self.raw, self.pairs, usable_cores(), self.colours, True, self.shape).checksums

    def build(self, storage: str, *options: object, memory: bool = False) -> BuildRun:
        """Build a new pack."""
        shutil.rmtree(self.out, ignore_errors=True)
        os.sync()  # a build must not wait for what the one before wrote
        classes = () if self.colours else ("--classes", len(CLASSES))
        size = "x".join(map(str, self.shape.stored))
        options = (
            *classes,
            "--size",
            size,
            "--fit",
            self.shape.fit,
            "--shard-size",
            SHARD,
            "--labels",
            self.labels,
            *options,
        )
        return run_build(["build", "--format", storage, *options, self.raw, self.out], memory)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--workers", type=int, default=usable_cores())
    options.add_argument("--formats", nargs="+", choices=STORAGES, default=list(STORAGES))
    options.add_argument("--shape", choices=SHAPES, default="street", help="the sizes and file types of the pictures")
    options.add_argument("--kernels", action="store_true", help="compare with a loop made of the packer's kernels")
    options.add_argument("--colours", action="store_true", help="labels are colours instead of class numbers")
    options.add_argument("--labels", choices=("index", "onehot"), default="index", help="the form of stored labels")
    options.add_argument(
        "--memory", action="store_true", help="measure the memory for --pairs and for ten times as many"
    )
    options.add_argument("--large", action="store_true", help="with --memory: pictures of 960x720, not small ones")
    options.add_argument("--scaling", action="store_true", help="compare one worker with one for each core")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="work there and delete nothing")
    chosen = options.parse_args()
    with _folder(chosen.keep) as root:
        if chosen.memory:
            compare_memory(root, chosen.pairs, chosen.formats, STREET if chosen.large else SMALL)
            return
        kind = "colours" if chosen.colours else "numbers"
        raw = root / (kind if chosen.shape == "street" else f"{kind}-{chosen.shape}")
        work = Workload(
            raw, root / "out", chosen.pairs, chosen.colours, chosen.labels, SHAPES[chosen.shape], chosen.kernels
        )
        if not raw.is_dir():
            make_linked_streets(raw, work.pairs, work.colours, work.shape)
        print("\n".join(header(work)), flush=True)
        if chosen.scaling:
            compare_scaling(work, chosen.rounds, chosen.formats)
        else:
            compare(work, chosen.rounds, chosen.formats, chosen.workers)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def header(work: Workload) -> list[str]:
    """Describe the work and the machine."""
    kind = "colours" if work.colours else "numbers"
    return [
        f"{work.pairs} pairs of {work.shape}, {kind}, labels as {work.labels}, shards of {SHARD // MIB} MiB",
        machine(),
        versions(PACKER_PACKAGES),
    ]


def compare(work: Workload, rounds: int, formats: Sequence[str], workers: int) -> None:
    """Run decode loops and builds in turns and print the table."""
    loops = [work.loop(workers)]
    builds: dict[str, list[tuple[BuildRun, float]]] = {}
    for _ in range(rounds):
        for storage in formats:
            run = work.build(storage, "--workers", workers)
            if work.labels == "index":
                check(work, storage)
            loops.append(work.loop(workers))
            builds.setdefault(storage, []).append((run, (loops[-2].seconds + loops[-1].seconds) / 2))
    table: list[tuple[str, ...]] = [("", "pairs/s", "lowest", "highest", "of loop", "cpu ms", "command", "start-up")]
    table.append((*_rates(LOOP, work.pairs, [loop.seconds for loop in loops], [loop.cpu for loop in loops]), "", ""))
    for storage, runs in builds.items():
        ratio = statistics.median(loop / run.build_seconds for run, loop in runs)
        command = statistics.median(run.seconds for run, _ in runs)
        start = statistics.median(run.seconds - run.build_seconds for run, _ in runs)
        cells = _rates(storage, work.pairs, [run.build_seconds for run, _ in runs], [run.cpu for run, _ in runs], ratio)
        table.append((*cells, f"{work.pairs / command:.1f}", f"{start:.2f}s"))
    print("", *aligned(table), sep="\n")
    seconds, size = _write_plainly(work.out)
    print(f"\nThe disk takes the {size / MIB:.0f} MiB in {seconds:.2f} s: {work.pairs / seconds:.1f} pairs/s")


def _rates(name: str, pairs: int, seconds: Sequence[float], cpu: Sequence[float], ratio: float = 1) -> tuple[str, ...]:
    rates = [pairs / taken for taken in seconds]
    numbers = (f"{number:.1f}" for number in (statistics.median(rates), min(rates), max(rates)))
    return name, *numbers, f"{ratio:.2f}", f"{1000 * statistics.median(cpu) / pairs:.2f}"


def _write_plainly(out: Path) -> tuple[float, int]:
    """Write as many bytes as a pack has, in one process that does nothing else. Return seconds and bytes."""
    size = Manifest.load(out).bytes
    block, path = os.urandom(MIB), out.with_name("plain")
    os.sync()
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - started
    path.unlink()
    return seconds, size


def compare_scaling(work: Workload, rounds: int, formats: Sequence[str]) -> None:
    """Compare one worker with one for each core."""
    print("", line(("pairs/s", "1 worker", f"{usable_cores()} workers", "times"), WIDTHS), sep="\n", flush=True)
    for storage in (LOOP, *formats):
        rates: dict[int, list[float]] = {1: [], usable_cores(): []}
        for _ in range(rounds):
            for workers, found in rates.items():
                found.append(work.pairs / _seconds(work, storage, workers))
        single, full = (statistics.median(found) for found in rates.values())
        print(line((storage, f"{single:.1f}", f"{full:.1f}", f"{full / single:.2f}"), WIDTHS), flush=True)


def _seconds(work: Workload, storage: str, workers: int) -> float:
    if storage == LOOP:
        return work.loop(workers).seconds
    return work.build(storage, "--workers", workers).build_seconds


def compare_memory(root: Path, pairs: int, formats: Sequence[str], shape: Shape) -> None:
    """Print the peak memory of all processes together, for some pairs and for ten times as many."""
    counts = (pairs, 10 * pairs)
    folders = [root / f"{shape.height}x{shape.width}-{count}" for count in counts]
    works = [Workload(raw, root / "out", count, False) for raw, count in zip(folders, counts, strict=True)]
    for work in works:
        if not work.raw.is_dir():
            make_linked_streets(work.raw, work.pairs, False, shape)
    print("peak MiB of all processes together")
    print(line(("", *(f"{count} pairs" for count in counts), "times"), WIDTHS), flush=True)
    for storage in formats:
        few, many = (work.build(storage, memory=True).memory / MIB for work in works)
        print(line((storage, f"{few:.0f}", f"{many:.0f}", f"{many / few:.2f}"), WIDTHS), flush=True)


def check(work: Workload, storage: str) -> None:
    """Compare the CRCs of every row of a pack with those of its pair in the decode loop."""
    receipts = [Receipt.load(path) for path in (work.out / "shards").glob(f"*{SUFFIX}")]
    packed = {key: crc for receipt in receipts for key, crc in zip(receipt.keys, receipt.row_checksums, strict=True)}
    if tuple(crc for _, crc in sorted(packed.items())) != work.checksums:
        raise RuntimeError(f"{storage}: the pack differs from what the decode loop made")
