"""Plan distinct tiny files on one core and on all, in turns; then in parts: seconds, CPU seconds, context switches.

    tools/run bench.plan_cores [--pairs 50000] [--rounds 2] [--parts 2] [--folder /dev/shm]

Each figure is of the whole command with its workers. All plans must have the same bytes. Half a million pairs take 5 GB
in memory below /dev/shm.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from program import parser

from bench.machine import machine

OPTIONS = ("--quiet", "--classes", "3", "--labels", "index", "--size", "8x8", "--shard-size", str(128 * 4 * 64))
SIDE, GRAY, RGB = 8, 0, 2
PR_SET_CHILD_SUBREAPER = 36
YOUNG = 3
"""Seconds after which a file has a state. Until then each plan has a name of its own."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=50_000)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--parts", type=int, default=2)
    options.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    chosen = options.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # workers whose server ends are waited for here
    print(machine())
    with tempfile.TemporaryDirectory(dir=chosen.folder) as temporary:
        root = Path(temporary)
        make_files(root / "raw", chosen.pairs)
        time.sleep(YOUNG)
        cores = sorted(os.sched_getaffinity(0))
        first = root / "plan-0"
        for number in range(2 * chosen.rounds):
            some = cores[:1] if number % 4 in (0, 3) else cores  # A B B A
            plan(root / f"plan-{number}", some, ())
            check_same(first, root / f"plan-{number}")
        for part in range(1, chosen.parts + 1):
            plan(root / "joined", cores, ("--part", f"{part}/{chosen.parts}"))
        plan(root / "joined", cores, ())
        check_same(first, root / "joined")


def make_files(raw: Path, pairs: int) -> None:
    """Write pairs of PNG, each with bytes of its own."""
    for kind in ("images", "masks"):
        for split in ("train", "val"):
            (raw / kind / split).mkdir(parents=True)
    for number in range(pairs):
        name = f"{'train' if number % 10 else 'val'}/street_{number:010d}.png"
        (raw / "images" / name).write_bytes(png(RGB, struct.pack("<I", number) * (3 * SIDE // 4)))
        (raw / "masks" / name).write_bytes(png(GRAY, bytes(number >> bit & 1 for bit in range(SIDE))))


def png(colour: int, line: bytes) -> bytes:
    """Return a PNG whose lines are all alike."""
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, colour, 0, 0, 0)
    chunks = (b"IHDR" + head, b"IDAT" + zlib.compress((b"\0" + line) * SIDE, 1), b"IEND")
    framed = (struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def plan(folder: Path, cores: Sequence[int], options: Sequence[str]) -> None:
    """Run the command on these cores and print what it cost."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "packer", "plan", *OPTIONS, *options, str(folder.parent / "raw"), str(folder)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    seconds = time.perf_counter() - started
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
    words = " ".join(options) or "whole plan"
    print(
        f"{words}, cores {len(cores)}: {seconds:.1f} s, {cpu:.1f} s of CPU, {switches:,} context switches", flush=True
    )


def check_same(first: Path, second: Path) -> None:
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
