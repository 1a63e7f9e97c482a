"""Read shards with changes that know their format: a reader may refuse them or deliver data, but never crash.

    tools/run drills.structured [--first 0] [--runs 1000000] [--seconds 600] [--format arrow …] [--keep FOLDER]

Where a null count changes, so may the length of its validity buffer, and checksums inside a file fit: see
`drills.structures`. Each format is read in a process of its own that may take little more memory than it has, and that
is replaced when it crashes or hangs. Exits 1 if anything was found: a crash, an error that is not ours, or more than 5
seconds. The files that did it stay in FOLDER/found.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import zlib
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from program import parser
from tables import line

from drills.fuzz_target import HEADROOM, Target
from drills.fuzz_targets import make_targets
from drills.structures import CHANGES, changed

HANG = 60.0
MOST_CRASHES = 1000
WIDTHS = (-8, 10, 8, 8)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--first", type=int, default=0, help="continue with the changed file of this number")
    options.add_argument("--runs", type=int, default=1_000_000, help="changed files of each format, with those before")
    options.add_argument("--seconds", type=int, default=600, help="the most seconds for each format")
    options.add_argument("--format", action="append", choices=tuple(CHANGES), help="only this; may be repeated")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="work there and delete nothing")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        targets = make_targets(folder)
        print(line(("format", "runs", "crashed", "wrong"), WIDTHS))
        numbers = range(chosen.first, chosen.runs)
        found = sum(drill(targets[name], folder, numbers, chosen.seconds) for name in chosen.format or CHANGES)
    sys.exit(1 if found else 0)


def drill(target: Target, folder: Path, numbers: range, seconds: int) -> int:
    """Read the changed files with these numbers, print the counts, and return the number of findings."""
    found = folder / "found" / target.name
    found.mkdir(parents=True, exist_ok=True)
    done: Synchronized[int] = multiprocessing.Value("q", numbers.start)
    end, crashes = time.monotonic() + seconds, 0
    while done.value < numbers.stop and time.monotonic() < end and crashes < MOST_CRASHES:
        child = multiprocessing.get_context("fork").Process(
            target=_serve, args=(target, done, numbers.stop, end, found)
        )
        child.start()
        before = -1
        while child.is_alive() and done.value != before:
            before = done.value
            child.join(HANG)
        child.kill()
        child.join()
        if child.exitcode:
            crashes += 1
            (found / f"crash-{done.value}.bin").write_bytes(_input(target, done.value))
            done.value += 1
    wrong = len(list(found.glob("wrong-*.log")))
    print(line((target.name, done.value - numbers.start, crashes, wrong), WIDTHS), flush=True)
    return crashes + wrong


def _input(target: Target, number: int) -> bytes:
    """Return the changed file of a run, the same in every run of the drill."""
    dice = random.Random(f"{target.name} {number}")
    return changed(target.name, dice.choice(target.seeds), dice)


def _serve(target: Target, done: Synchronized[int], runs: int, end: float, found: Path) -> None:
    """Read changed files until all are done. `done` is the number of the file that is being read."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries print what they abort with
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, resource.RLIM_INFINITY))
    while done.value < runs and time.monotonic() < end:
        data = _input(target, done.value)
        wrong = target.judge(data)
        if wrong is not None:
            kind = f"{zlib.crc32(wrong.partition(': ')[0].encode()):08x}"
            (found / f"wrong-{kind}.bin").write_bytes(data)
            (found / f"wrong-{kind}.log").write_text(wrong + "\n")
        done.value += 1
