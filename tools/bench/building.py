"""Benchmark: `packer build` in every format, against a bare loop that decodes, resizes and maps, and writes nothing.

    PYTHONPATH=tools python -m bench.building [--pairs 400] [--rounds 5] [--colours] [--labels onehot]
                                              [--scaling | --memory] [--keep FOLDER]

Bare loops and builds take turns; a build is held against the mean of the loops before and after it. *pairs/s* counts
from the first shard that is handed out to the last receipt, *command* all from start to end; *cpu* is the time that
the processors spend on a pair in the workers. What is packed must be what the bare loop made, or it fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from street import CLASSES

from bench.bare import SIZE, bare_loop
from bench.streets import HEIGHT, WIDTH, make_streets
from bench.watched import Run, watched
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.machine import usable_cores

LIBRARIES = ("numpy", "opencv-python", "simplejpeg", "h5py", "lmdb", "pyarrow")
SHARD = 32 << 20
MIB = 1 << 20
SMALL = (96, 128)
"""Pictures of the measurement of memory: many pairs, little to decode."""


@dataclass(frozen=True)
class Job:
    """What is packed, and in which form its labels are stored."""

    raw: Path
    out: Path
    pairs: int
    colours: bool
    labels: str = "index"

    @cached_property
    def checksums(self) -> tuple[int, ...]:
        """What the bare loop makes of each pair."""
        return bare_loop(self.raw, self.pairs, usable_cores(), self.colours, checked=True).checksums

    def build(self, storage: str, *options: object, memory: bool = False) -> Run:
        """Pack it anew."""
        shutil.rmtree(self.out, ignore_errors=True)
        os.sync()  # what others wrote before is not this one's to wait for
        classes = () if self.colours else ("--classes", len(CLASSES))
        options = (*classes, "--size", f"{SIZE}x{SIZE}", "--shard-size", SHARD, "--labels", self.labels, *options)
        return watched(["build", "--format", storage, *options, self.raw, self.out], memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--formats", nargs="+", choices=STORAGES, default=list(STORAGES))
    parser.add_argument("--colours", action="store_true", help="Labels hold colours, not numbers.")
    parser.add_argument("--labels", choices=("index", "onehot"), default="index", help="How labels are stored.")
    parser.add_argument(
        "--memory", action="store_true", help="Measure memory, of these pairs and of ten times as many."
    )
    parser.add_argument("--large", action="store_true", help="With --memory: of pictures of 960x720, not small ones.")
    parser.add_argument("--scaling", action="store_true", help="Compare one worker with as many as there are cores.")
    parser.add_argument("--keep", type=Path, help="Where to work, and to leave everything.")
    chosen = parser.parse_args()
    with _folder(chosen.keep) as root:
        if chosen.memory:
            memory(root, chosen.pairs, chosen.formats, (HEIGHT, WIDTH) if chosen.large else SMALL)
            return
        job = Job(
            root / ("colours" if chosen.colours else "numbers"),
            root / "out",
            chosen.pairs,
            chosen.colours,
            chosen.labels,
        )
        if not job.raw.is_dir():
            make_streets(job.raw, job.pairs, job.colours)
        print("\n".join(header(job)), flush=True)
        if chosen.scaling:
            scaling(job, chosen.rounds, chosen.formats)
        else:
            compare(job, chosen.rounds, chosen.formats, chosen.workers)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def header(job: Job) -> list[str]:
    """What was measured on what."""
    what = "colours" if job.colours else "numbers"
    return [
        f"{job.pairs} pairs of {WIDTH}x{HEIGHT}, JPEG and PNG of {what}, to {SIZE}x{SIZE}, labels as {job.labels}, "
        f"shards of {SHARD // MIB} MiB",
        machine(),
        f"python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    ]


def machine() -> str:
    """What ran it."""
    model = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{len(model)} x {model[0]}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def compare(job: Job, rounds: int, formats: Sequence[str], workers: int) -> None:
    """Bare loops and builds in turns."""
    bares, builds = [bare_loop(job.raw, job.pairs, workers, job.colours)], dict[str, list[tuple[Run, float]]]()
    for _ in range(rounds):
        for storage in formats:
            run = job.build(storage, "--workers", workers)
            if job.labels == "index":
                check(job, storage)
            bares.append(bare_loop(job.raw, job.pairs, workers, job.colours))
            builds.setdefault(storage, []).append((run, (bares[-2].seconds + bares[-1].seconds) / 2))
    print(f"\n{'':12}{'pairs/s':>9}{'lowest':>8}{'highest':>8}{'of bare':>9}{'cpu ms':>8}{'command':>9}{'start-up':>9}")
    _tell("bare loop", job.pairs, [one.seconds for one in bares], [one.cpu for one in bares])
    for storage, runs in builds.items():
        ratio = statistics.median(bare / run.build_seconds for run, bare in runs)
        command = statistics.median(run.seconds for run, _ in runs)
        start = statistics.median(run.seconds - run.build_seconds for run, _ in runs)
        more = f"{job.pairs / command:9.1f}{start:8.2f}s"
        _tell(storage, job.pairs, [run.build_seconds for run, _ in runs], [run.cpu for run, _ in runs], ratio, more)
    _tell_disk(job)


def _tell(
    name: str, pairs: int, seconds: Sequence[float], cpu: Sequence[float], ratio: float = 1, more: str = ""
) -> None:
    rates = [pairs / one for one in seconds]
    each = 1000 * statistics.median(cpu) / pairs
    print(
        f"{name:12}{statistics.median(rates):9.1f}{min(rates):8.1f}{max(rates):8.1f}{ratio:9.2f}{each:8.2f}{more}",
        flush=True,
    )


def _tell_disk(job: Job) -> None:
    """How fast the disk takes the last pack's bytes from one process that does nothing else."""
    size = Manifest.load(job.out).bytes
    block, path = os.urandom(MIB), job.out.with_name("plain")
    os.sync()
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - started
    path.unlink()
    print(f"\nThe disk takes the {size / MIB:.0f} MiB in {seconds:.2f} s: {job.pairs / seconds:.1f} pairs/s")


def scaling(job: Job, rounds: int, formats: Sequence[str]) -> None:
    """One worker, and one for each core."""
    print(f"\n{'':12}{'1 worker':>10}{f'{usable_cores()} workers':>11}{'times':>8}   pairs/s")
    for storage in ("bare loop", *formats):
        rates: dict[int, list[float]] = {1: [], usable_cores(): []}
        for _ in range(rounds):
            for workers, found in rates.items():
                found.append(job.pairs / _seconds(job, storage, workers))
        one, all_of_them = (statistics.median(found) for found in rates.values())
        print(f"{storage:12}{one:10.1f}{all_of_them:11.1f}{all_of_them / one:8.2f}", flush=True)


def _seconds(job: Job, storage: str, workers: int) -> float:
    if storage == "bare loop":
        return bare_loop(job.raw, job.pairs, workers, job.colours).seconds
    return job.build(storage, "--workers", workers).build_seconds


def memory(root: Path, pairs: int, formats: Sequence[str], size: tuple[int, int]) -> None:
    """The most memory of all processes together, for some pairs and for ten times as many."""
    jobs = [Job(root / f"{size[0]}x{size[1]}-{count}", root / "out", count, False) for count in (pairs, 10 * pairs)]
    for job in jobs:
        if not job.raw.is_dir():
            make_streets(job.raw, job.pairs, False, *size)
    print(f"{'':12}{pairs:>10} pairs{10 * pairs:>10} pairs{'times':>8}   peak MiB of all processes")
    for storage in formats:
        first, second = (job.build(storage, memory=True).memory / MIB for job in jobs)
        print(f"{storage:12}{first:16.0f}{second:16.0f}{second / first:8.2f}", flush=True)


def check(job: Job, storage: str) -> None:
    """That a pack holds what the bare loop made: the CRC of every row is that of its pair."""
    receipts = [Receipt.load(path) for path in (job.out / "shards").glob(f"*{SUFFIX}")]
    packed = {key: crc for receipt in receipts for key, crc in zip(receipt.keys, receipt.crc32, strict=True)}
    if tuple(crc for _, crc in sorted(packed.items())) != job.checksums:
        raise RuntimeError(f"{storage}: the pack does not hold what the bare loop made")


if __name__ == "__main__":
    main()
