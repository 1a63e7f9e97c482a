"""Each kernel that fills batches, at the offsets between source and target within a page, next to memcpy.

    tools/run bench.kernel_offsets [--step 64] [--target 0] [--rounds 5] [--only rows]

A load waits for an earlier store whose address has the same low 12 bits. So a loop can be fast in a file whose rows
begin at 128 bytes of a page, and take three times as long in one whose rows begin at a page. This program puts the
source at every `--step` bytes of a page, and the target at `--target`. Kernel and memcpy take turns. Rates are bytes
written in a second of CPU, medians of the rounds. Rows and windows come from a mapped file that is larger than the
caches. The table shows the median rate of each kernel, its slowest offset, and its ratio to memcpy of as many bytes at
the same offset. The exit status is 1 if a ratio is below 0.75: a mirrored window
takes a little longer than memcpy, which mirrors nothing, and the noise of one offset is a tenth.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import aligned

from readers.contract.kernels import kernel
from readers.huge_pages import map_memory

PAGE = 4096
BATCH, BATCHES, ROW = 16, 6, 3 * 512 * 512
SIDE, ODD, TALL, WIDE, CLASSES = 512, 500, 1024, 2048, 12
FILE = 384 << 20
LEAST = 0.75
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """A kernel at work: `run(offset)` fills a batch from a source at this offset of a page, `plain` copies as much."""

    name: str
    run: Callable[[int], object]
    plain: Callable[[int], object]
    size: int = BATCH * ROW
    """The bytes that it writes."""
    most: int = PAGE
    """The offsets are less than this."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--step", type=int, default=64, help="bytes between two offsets; 1 takes all 4,096")
    options.add_argument("--target", type=int, default=0, help="where in a page the target begins")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="", metavar="TEXT", help="only kernels whose names contain this")
    chosen = options.parse_args()
    offsets = sorted({*range(0, PAGE, chosen.step), 1, 16, 63, PAGE - 16, PAGE - 4, PAGE - 1})
    table: list[tuple[str, ...]] = [("", "GB/s", "slowest", "at", "to memcpy", "least", "at")]
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        source = mapped(Path(folder) / "source")
        for case in cases(source, chosen.target):
            if chosen.only in case.name:
                row, least = measure(case, [offset for offset in offsets if offset < case.most], chosen.rounds)
                table.append(row)
                slow += least < LEAST
    print(*aligned(table), sep="\n")
    sys.exit(1 if slow else 0)


def measure(case: Case, offsets: list[int], rounds: int) -> tuple[tuple[str, ...], float]:
    """Return a row of the table, and the least ratio to memcpy."""
    rates: dict[int, list[float]] = {offset: [] for offset in offsets}
    plain: dict[int, list[float]] = {offset: [] for offset in offsets}
    for _ in range(rounds):
        for offset in offsets:
            rates[offset].append(case.size / cpu_seconds(case.run, offset) / 1e9)
            plain[offset].append(case.size / cpu_seconds(case.plain, offset) / 1e9)
    middle = {offset: statistics.median(found) for offset, found in rates.items()}
    ratios = {offset: middle[offset] / statistics.median(plain[offset]) for offset in offsets}
    slowest, least = min(middle, key=middle.__getitem__), min(ratios, key=ratios.__getitem__)
    numbers = (statistics.median(middle.values()), middle[slowest])
    row = (case.name, *(f"{number:.2f}" for number in numbers), str(slowest))
    return (*row, f"{statistics.median(ratios.values()):.2f}", f"{ratios[least]:.2f}", str(least)), ratios[least]


def cpu_seconds(run: Callable[[int], object], offset: int) -> float:
    """Return the least CPU seconds of a few calls: an interrupt makes a call longer, never shorter."""
    seconds = []
    for _ in range(3):
        started = time.thread_time()
        run(offset)
        seconds.append(time.thread_time() - started)
    return min(seconds)


def cases(source: Bytes, target: int) -> list[Case]:
    """Return a case for each kernel that this installation has."""
    dice = np.random.default_rng(7)
    gather, window, planes, onehot = (
        kernel(f"readers.{name}_kernel") for name in ("formats.gather", "window", "formats.planes", "contract.onehot")
    )
    if not (gather and window and planes and onehot):
        sys.exit("a kernel is missing: packer --version names it")
    numbers, pixels = (memory(size + PAGE, 0) for size in (SIDE * SIDE, 3 * SIDE * SIDE))
    turns = itertools.cycle([memory(BATCH * ROW, target) for _ in range(BATCHES)])
    """Batches in turn, as a loader has them: together they are larger than the caches."""

    def starts(size: int) -> list[int]:
        return [int(page) * PAGE for page in dice.integers(0, (len(source) - size) // PAGE - 1, BATCH)]

    def run_rows(offset: int) -> None:
        rows = [start + offset for start in starts(ROW)]
        gather.gather([(source, rows, list(range(BATCH)))], next(turns).reshape(BATCH, ROW))

    def copy_rows(offset: int) -> None:
        for row, start in zip(next(turns).reshape(BATCH, ROW), starts(ROW), strict=True):
            np.copyto(row, source[start + offset : start + offset + ROW])

    def run_windows(width: int, flip: bool, offset: int) -> None:
        where = [(start, TALL, WIDE, n, 100, offset, flip) for n, start in enumerate(starts(3 * TALL * WIDE))]
        window.copy_all(
            [(source, numbers) for numbers in where],
            next(turns)[: BATCH * 3 * SIDE * width].reshape(BATCH, 3, SIDE, width),
        )

    def copy_windows(width: int, offset: int) -> None:
        for part, start in zip(
            next(turns)[: BATCH * 3 * SIDE * width].reshape(BATCH, 3, SIDE, width), starts(3 * TALL * WIDE), strict=True
        ):
            picture = source[start : start + 3 * TALL * WIDE].reshape(3, TALL, WIDE)
            np.copyto(part, picture[:, 100 : 100 + SIDE, offset : offset + width])

    def run_planes(offset: int) -> None:
        for planes_of_row in next(turns).reshape(BATCH, 3, SIDE, SIDE):
            planes.split(pixels[offset : offset + ROW].reshape(SIDE, SIDE, 3), planes_of_row)

    def copy_planes(offset: int) -> None:
        for row in next(turns).reshape(BATCH, ROW):
            np.copyto(row, pixels[offset : offset + ROW])

    def run_one_hot(offset: int) -> None:
        for row in next(turns).reshape(-1, CLASSES, SIDE, SIDE):
            onehot.expand(numbers[offset : offset + SIDE * SIDE].reshape(SIDE, SIDE), row)

    def copy_numbers(offset: int) -> None:
        for plane in next(turns).reshape(-1, SIDE * SIDE):
            np.copyto(plane, numbers[offset : offset + SIDE * SIDE])

    return [
        Case("rows", run_rows, copy_rows),
        *(
            Case(
                f"windows of {width}{', mirrored' * flip}",
                partial(run_windows, width, flip),
                partial(copy_windows, width),
                BATCH * 3 * SIDE * width,
                WIDE - SIDE,
            )
            for width in (SIDE, ODD)
            for flip in (False, True)
        ),
        Case("planes", run_planes, copy_planes),
        Case("one-hot", run_one_hot, copy_numbers),
    ]


def memory(size: int, offset: int) -> Bytes:
    """Return memory like that of a batch, which begins at this offset of a page, and is in use."""
    found = np.frombuffer(map_memory(size + PAGE), np.uint8, size + PAGE)[offset : offset + size]
    found[:] = 1
    return found


def mapped(path: Path) -> Bytes:
    """Return a mapped file that is larger than the caches, and is in memory."""
    with path.open("wb") as file:
        for _ in range(FILE >> 24):
            file.write(np.random.default_rng(1).bytes(1 << 24))
    found: Bytes = np.memmap(path, np.uint8, "r")
    found.sum()
    return found
