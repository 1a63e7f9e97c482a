"""Another checkout next to this one: reading and building the same rows, in turns.

    tools/run bench.checkouts ../before [--rounds 15] [--seconds 4] [--only 'build *'] [--keep FOLDER]

Both must have their kernels: `python setup.py build_ext --inplace`. A ratio is the rate of this checkout by that of the
other one in the same round, or the CPU time of the other one by that of this one: above 1, this one is better. Who was
first is second in the next round. Reading: both have a new process in each round, and read for some seconds, in slices
that alternate. Building: the whole command, with the CPU time of all its processes. A *night* builds again, with
nothing changed or with 1 % of the pictures; of *one colour*, every row is a finding.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from program import REPO, TOOLS, parser
from tables import aligned

from bench.checkout_builds import (
    Checkout,
    Cost,
    Slice,
    build,
    building,
    make_raw,
    night,
    output,
    packer,
    run,
    wait_for_orphans,
)
from bench.checkout_job import WAYS

SLICES = 4
"""The slices of each checkout in a round of reading."""
BUILDS = (("512x512", "npy"), ("512x512", "arrow"), ("8x8", "npy"), ("8x8", "arrow"))
NIGHTS = ("8x8", "8x8 of one colour")
GIT = ["git", "log", "-1", "--format=%h of %cI:"]
Start = Callable[[Checkout, int], AbstractContextManager[Slice]]
"""Prepares a round of a checkout; the number is that of the round."""


@dataclass(frozen=True)
class Task:
    """Something that both checkouts do, and the slices of a round."""

    name: str
    start: Start
    slices: int = 1


def main() -> None:
    options = parser(__doc__)
    options.add_argument("other", type=Path, help="the other checkout")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--seconds", type=float, default=4, help="of reading, for each checkout in a round")
    options.add_argument("--only", default="*", metavar="PATTERN", help="only this, such as: build *")
    options.add_argument("--pairs", type=int, help="of each data set, for a short run")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    checkouts = (Checkout("before", chosen.other.resolve()), Checkout("now", REPO))
    for checkout in checkouts:
        commit, version = (output(checkout, argv).split() for argv in (GIT, packer("--version")))
        print(f"{checkout.name:8}", *commit, *version, flush=True)
    wait_for_orphans()
    with tempfile.TemporaryDirectory() as temporary:
        root = (chosen.keep or Path(temporary)).resolve()
        make_raw(root, chosen.pairs)
        lines: list[tuple[str, ...]] = [
            ("", "rows/s", "before", "ratio", "quartiles", "CPU us a row", "before", "ratio", "quartiles")
        ]
        for task in tasks(root, chosen.seconds / SLICES):
            if fnmatch(task.name, chosen.only):
                lines.append(row(task.name, measure(task, checkouts, chosen.rounds)))
                print(*lines[-1], file=sys.stderr, flush=True)
    print("", *aligned(lines), sep="\n")


def tasks(root: Path, seconds: float) -> Iterator[Task]:
    for way in WAYS:
        yield Task(way, partial(reading, root, way, seconds), SLICES)
    for name, storage in BUILDS:
        yield Task(f"build {name}, {storage}", partial(building, root, name, storage))
    for name in NIGHTS:
        yield Task(f"night {name}, nothing changed", partial(night, root, name, 0))
        yield Task(f"night {name}, 1 % changed", partial(night, root, name, 100))


def measure(task: Task, checkouts: tuple[Checkout, Checkout], rounds: int) -> list[list[Cost]]:
    """Return the costs of each round: of the other checkout, of this one."""
    found = []
    for number in range(rounds):
        with task.start(checkouts[0], number) as before, task.start(checkouts[1], number) as now:
            slices: tuple[list[Cost], list[Cost]] = ([], [])
            for part in range(task.slices):
                for which in (0, 1) if (number + part) % 2 == 0 else (1, 0):
                    slices[which].append((before, now)[which]())
        found.append([total(costs) for costs in slices])
    return found


def total(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(cost.rows for cost in costs), sum(cost.seconds for cost in costs), sum(cost.cpu for cost in costs))


def row(name: str, found: list[list[Cost]]) -> tuple[str, ...]:
    """Return a line of the table: medians of the rounds, and the quartiles of the ratios."""
    cells: list[str] = [name]
    for value, digits, better in ((rate, ".0f", 1), (cpu, ".1f", -1)):
        values = [[value(cost) for cost in costs] for costs in found]
        ratios = [(now / before) ** better for before, now in values]
        low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        cells += [format(median(each), digits) for each in reversed(list(zip(*values, strict=True)))]
        cells += [f"{median(ratios):.3f}", f"{low:.3f} to {high:.3f}"]
    return tuple(cells)


def rate(cost: Cost) -> float:
    return cost.rows / cost.seconds


def cpu(cost: Cost) -> float:
    """Return the CPU microseconds of a row."""
    return 1e6 * cost.cpu / cost.rows


@contextmanager
def reading(root: Path, way: str, seconds: float, checkout: Checkout, number: int) -> Iterator[Slice]:
    """Read the pack of 512x512 in a new process, which has read for a slice before."""
    pack = root / "read"
    if not pack.is_dir():
        run(checkout, build(root / "512x512", pack))
    environment = {**os.environ, "PYTHONPATH": f"{checkout.folder}{os.pathsep}{TOOLS}"}
    command = [sys.executable, "-m", "bench.checkout_job", str(checkout.folder), str(pack), str(seconds)]
    with subprocess.Popen(
        command,
        cwd=checkout.folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def read() -> Cost:
            requests.write(f"{way}\n")
            rows, clock, cpu = answers.readline().split()
            return Cost(int(rows), float(clock), float(cpu))

        read()
        yield read
