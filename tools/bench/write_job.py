"""One job of bench.building_peers: write the pairs of a folder with one library, or read them back.

    tools/run bench.write_job write|checksums JOB ANSWER

JOB is a `WriteJob` as JSON. The answer, as JSON too, is written to the file ANSWER.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scenes.camera import STREET
from scenes.shapes import Shape
from scenes.street import CLASSES
from zlib_ng.zlib_ng import crc32

from bench.cpu import cpu_seconds
from bench.decode_loop import Checksums, decode_loop
from bench.decoded_pairs import DecodedPairs
from bench.libraries import Loaders
from readers.contract.manifest import STORAGES

LOOP = "bare"
"""The name of the decode loop, which writes nothing, among the writers."""
SHARD = 32 << 20
"""The size of our shards. It is small, because few pairs must make enough shards for all cores."""


@dataclass(frozen=True)
class WriteJob:
    """Input, output and writer. `name` is a format of ours, a file of libraries/, or LOOP."""

    name: str
    raw: Path
    out: Path
    pairs: int
    side: int
    workers: int

    @property
    def shape(self) -> Shape:
        """The shape of the pictures."""
        return replace(STREET, stored=(self.side, self.side))

    def to_text(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_text(cls, text: str) -> WriteJob:
        job = cls(**json.loads(text))
        return replace(job, raw=Path(job.raw), out=Path(job.out))


@dataclass(frozen=True)
class Written:
    """Seconds until the writer returns, and until all files are on the disk; CPU seconds of all processes; bytes."""

    seconds: float
    durable: float
    cpu: float
    bytes: int


def main() -> None:
    action, job, answer = sys.argv[1:]
    actions: dict[str, Callable[[WriteJob], Any]] = {"write": write, "checksums": checksums}
    warnings.simplefilter("ignore")
    Path(answer).write_text(json.dumps(actions[action](WriteJob.from_text(job)), default=asdict))


def write(job: WriteJob) -> Written:
    """Import everything, then start the clock and write."""
    if job.name == LOOP:
        loop = decode_loop(job.raw, job.pairs, job.workers, shape=job.shape)
        return Written(loop.seconds, loop.seconds, loop.cpu, 0)
    work = writer(job)
    spent, started = cpu_seconds(), time.perf_counter()
    work()
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - spent
    files = [path for path in sorted(job.out.rglob("*")) if path.is_file()]
    bring_to_disk(job.out)
    return Written(seconds, time.perf_counter() - started, cpu, sum(path.stat().st_size for path in files))


def writer(job: WriteJob) -> Callable[[], None]:
    """Return the function that writes into `out`, which exists and is empty."""
    if job.name in STORAGES:
        return packer(job)
    write_pairs = import_module(f"bench.libraries.{job.name}").write
    return partial(write_pairs, DecodedPairs(job.raw, job.pairs, job.side), job.out / "pairs", job.workers)


def packer(job: WriteJob) -> Callable[[], None]:
    """Return a function that runs `packer build` in this process."""
    command = import_module("packer.cli").main
    import_module(f"packer.shards.formats.{job.name}")
    options = ["--format", job.name, "--labels", "index", "--classes", len(CLASSES), "--size", f"{job.side}x{job.side}"]
    options += ["--shard-size", SHARD, "--workers", job.workers, "--quiet", job.raw, job.out / "pack"]

    def build() -> None:
        if code := command(["build", *map(str, options)], standalone_mode=False):
            raise RuntimeError(f"packer build exited with {code}")

    return build


def bring_to_disk(folder: Path) -> None:
    """Sync all files of a folder, and their names."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def checksums(job: WriteJob) -> list[Checksums]:
    """Return the CRCs of each pair that is read back, as in our receipts. They are sorted: orders of reading differ."""
    if job.name == LOOP:
        return sorted(decode_loop(job.raw, job.pairs, job.workers, checked=True, shape=job.shape).checksums)
    ours = job.name in STORAGES
    module = import_module(f"bench.libraries.{'segpack' if ours else job.name}")
    loaders: Loaders = module.loaders(job.out if ours else job.out / "pairs")
    found = []
    for images, labels in next(iter(loaders.values()))():
        for image, label in zip(images.numpy(), labels.numpy(), strict=True):
            planes = image if len(image) == 3 else image.transpose(2, 0, 1)
            found.append((crc32(_bytes(planes)), crc32(_bytes(label))))
    return sorted(found)


def _bytes(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the numbers as bytes; HF datasets delivers them with 64 bits each."""
    return np.ascontiguousarray(numbers, np.uint8)
