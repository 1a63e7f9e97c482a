"""The building half of bench.checkouts: builds and nights with the code of a checkout, and the raw folders."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scenes.noise import make_blocks, write_noise
from scenes.pictures import LONG_AGO, write_picture

SETS = {"512x512": (400, 512), "8x8": (20_000, 8), "8x8 of one colour": (20_000, 8)}
"""Pairs and side."""
CLASSES = 12
PR_SET_CHILD_SUBREAPER = 36


class Checkout(NamedTuple):
    """A folder with the code, and the word for it."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Cost:
    """Rows, seconds, and the CPU seconds of all processes."""

    rows: int
    seconds: float
    cpu: float


Slice = Callable[[], Cost]
"""Does something once."""


def wait_for_orphans() -> None:
    """Become the parent of processes that a build leaves behind, so that `run` waits for them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


@contextmanager
def building(root: Path, name: str, storage: str, checkout: Checkout, number: int) -> Iterator[Slice]:
    """Build a pack from the beginning."""
    out = root / f"out-{checkout.name}"
    shutil.rmtree(out, ignore_errors=True)
    yield partial(run, checkout, build(root / name, out, "--format", storage))
    shutil.rmtree(out)


def night(root: Path, name: str, every: int, checkout: Checkout, number: int) -> AbstractContextManager[Slice]:
    """Build once more what the same checkout has built. Of `every` so many pictures one has changed."""
    raw, out = root / name, root / f"night-{name}-{checkout.name}"
    command = build(raw, out, "--shard-size", "256KiB")
    if not number or not out.is_dir():
        run(checkout, command)

    def again() -> Cost:
        for picture in range(0, sum(1 for _ in (raw / "images").iterdir()), every) if every else ():
            write_old(raw, picture, number + 1)
        return run(checkout, command)

    return nullcontext(again)


def build(raw: Path, out: Path | str, *options: str) -> list[str]:
    settings = ["--quiet", "--json", "--labels", "index", "--classes", str(CLASSES)]
    return packer("build", *settings, *options, str(raw), str(out))


def packer(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "packer", *arguments]


def run(checkout: Checkout, command: list[str]) -> Cost:
    """Run a build to its end, and wait for all processes that it started."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(command, **_inside(checkout), start_new_session=True) as process:
        answer, _ = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-process.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(json.loads(answer)["rows"], seconds, cpu)


def output(checkout: Checkout, command: list[str]) -> str:
    """Return what a command prints that runs with the code of a checkout."""
    return str(subprocess.run(command, **_inside(checkout), check=True).stdout)


def _inside(checkout: Checkout) -> dict[str, Any]:
    """Return how a command is started with the code of a checkout."""
    # Python keeps compiled modules for its users; without them a start takes longer.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(checkout.folder)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return {"cwd": checkout.folder, "env": environment, "text": True, **pipes}


def make_raw(root: Path, pairs: int | None) -> None:
    """Make the raw folders that do not exist yet."""
    for name, (many, side) in SETS.items():
        raw = root / name
        if raw.is_dir():
            continue
        if side > 100:
            make_blocks(raw, pairs or many, (side, side), CLASSES, np.random.default_rng(0))
            continue
        for number in range(pairs or many):
            write_old(raw, number, 0)


def write_old(raw: Path, number: int, version: int) -> None:
    """Write a pair whose files are old, so that a build believes their times."""
    side = SETS[raw.name][1]
    write_noise(raw, f"{number:05}", (side, side), CLASSES, (version, number))
    if raw.name.endswith("colour"):
        write_picture(raw / f"images/{number:05}.png", np.full((side, side, 3), (version, *divmod(number, 256)), "u1"))
    for kind in ("images", "labels"):
        os.utime(raw / kind / f"{number:05}.png", (LONG_AGO + version, LONG_AGO + version))
