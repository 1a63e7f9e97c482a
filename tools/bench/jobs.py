"""What a contender of bench.writers does: it writes the pairs of a folder, or reads back what it wrote."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from street import CLASSES
from zlib_ng.zlib_ng import crc32

from bench.bare import bare_loop
from bench.contenders import Passes
from bench.cpu import cpu_seconds
from bench.decoded import DecodedPairs
from readers.contract.manifest import STORAGES

BARE = "bare"
SHARD = 32 << 20
"""Of our packs: so few pairs make enough shards for all cores to be at work."""


@dataclass(frozen=True)
class Job:
    """Who is to write what where. `name` is a format of ours, a file of contenders/, or BARE, which writes nothing."""

    name: str
    raw: Path
    out: Path
    pairs: int
    side: int
    workers: int

    def to_text(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_text(cls, text: str) -> Job:
        job = cls(**json.loads(text))
        return replace(job, raw=Path(job.raw), out=Path(job.out))


@dataclass(frozen=True)
class Written:
    """Seconds from the call of the writer to its return, and until all is on the disk as well; the processors' seconds
    of all its processes, and the bytes of all its files."""

    seconds: float
    durable: float
    cpu: float
    bytes: int


def write(job: Job) -> Written:
    """Everything is imported before the clock starts."""
    if job.name == BARE:
        bare = bare_loop(job.raw, job.pairs, job.workers, side=job.side)
        return Written(bare.seconds, bare.seconds, bare.cpu, 0)
    work = writer(job)
    spent, started = cpu_seconds(), time.perf_counter()
    work()
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - spent
    files = [path for path in sorted(job.out.rglob("*")) if path.is_file()]
    bring_to_disk(job.out)
    return Written(seconds, time.perf_counter() - started, cpu, sum(path.stat().st_size for path in files))


def writer(job: Job) -> Callable[[], None]:
    """What writes into `out`, which is there and empty."""
    if job.name in STORAGES:
        return packer(job)
    write = import_module(f"bench.contenders.{job.name}").write
    return partial(write, DecodedPairs(job.raw, job.pairs, job.side), job.out / "pairs", job.workers)


def packer(job: Job) -> Callable[[], None]:
    """Ourselves: the command, in this process."""
    command = import_module("packer.cli").main
    import_module(f"packer.shards.formats.{job.name}")
    options = ["--format", job.name, "--labels", "index", "--classes", len(CLASSES), "--size", f"{job.side}x{job.side}"]
    options += ["--shard-size", SHARD, "--workers", job.workers, "--quiet", job.raw, job.out / "pack"]

    def build() -> None:
        if code := command(["build", *map(str, options)], standalone_mode=False):
            raise RuntimeError(f"packer build ended with {code}")

    return build


def bring_to_disk(folder: Path) -> None:
    """All files in a folder, and their names."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def checksums(job: Job) -> list[int]:
    """The CRC of each pair that comes back, as our receipts have it; sorted, as some deliver in their own order."""
    if job.name == BARE:
        return sorted(bare_loop(job.raw, job.pairs, job.workers, checked=True, side=job.side).checksums)
    ours = job.name in STORAGES
    module = import_module(f"bench.contenders.{'segpack' if ours else job.name}")
    ways: dict[str, Passes] = module.ways(job.out if ours else job.out / "pairs")
    found = []
    for images, labels in next(iter(ways.values()))():
        for image, label in zip(images.numpy(), labels.numpy(), strict=True):
            planes = image if len(image) == 3 else image.transpose(2, 0, 1)
            found.append(crc32(_bytes(label), crc32(_bytes(planes))))
    return sorted(found)


def _bytes(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Those of HF datasets come with 64 bits each."""
    return np.ascontiguousarray(numbers, np.uint8)
