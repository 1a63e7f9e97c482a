"""Start many builds of one pack at the same instant; read a pack while builds and rollbacks publish it.

    tools/run drills.concurrent_builds [--builders 8] [--rounds 5] [--publishes 500] [--readers 4]

Each build has pictures of its own, and all start when all have imported everything. A build that does not get the lock
must exit 75 within seconds and name one that did. Each build that gets it must publish a new generation. A reader that
opens the pack must see exactly one version. A data set that was opened before must keep seeing its own.
"""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from program import parser
from scenes.tiny import SHARDS

from drills.commands import must
from drills.published import temporary
from drills.tally import Tally, finish
from drills.versions import CHANGING, make_version, read_version, version_of
from packer.errors import BusyError
from packer.packs.generations import list_generations
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest

SOON, FIRST_SOON = 60.0, 120.0
"""Seconds within which a build must exit 75. It takes longer for a new pack, which has no lock until a build has made
its plan, and all plan at the same time."""
READY = """
import sys, time
import packer.building.finish, packer.building.run_build
from packer.cli import main

def timed(function, before):
    def call(*arguments):
        if before:
            print(time.monotonic(), flush=True)
        result = function(*arguments)
        if not before:
            print(time.monotonic(), flush=True)
        return result
    return call

packer.building.run_build.prepare_target = timed(packer.building.run_build.prepare_target, before=True)
packer.building.finish.commit = timed(packer.building.finish.commit, before=False)
print("ready", flush=True)
sys.stdin.read(1)
main(sys.argv[1:], prog_name="packer")
"""
BUSY = BusyError.exit_code
NAMED = re.compile(r"is being changed by process (\d+) on ")
EVERY = 3
"""One publication in so many is a build. The others are rollbacks, which take less time."""


@dataclass(frozen=True)
class Builder:
    """A build that has ended."""

    process: int
    code: int
    output: str
    errors: str
    seconds: float

    @property
    def changing(self) -> tuple[float, float]:
        """The time from when to when the build changed the pack, if it got the lock."""
        begin, end = self.output.split()[:2]
        return float(begin), float(end)


def race(root: Path, storage: str, builders: int, rounds: int) -> Tally:
    """Start builds of one pack at the same instant, several times."""
    out, tally, version = root / "out", Tally(), 0
    for number in range(rounds):
        raws = []
        for index in range(builders):
            version += 1
            raws.append(root / f"raw{index}")
            make_version(raws[-1], version)
        before = len(list_generations(out)) if (out / "generations").is_dir() else 0
        ended = _start_together(raws, out, storage)
        _judge(tally, ended, len(list_generations(out)) - before, f"{storage}, round {number}")
        slowest = max((builder.seconds for builder in ended if builder.code == BUSY), default=0.0)
        print(f"{storage:<6}round {number}: the last exit 75 came after {slowest:.1f} s", flush=True)
        limit = SOON if number else FIRST_SOON
        tally.demand(slowest < limit, f"{storage}, round {number}: exit 75 after {slowest:.1f} s")
        tally.demand(read_version(out) in range(version - builders + 1, version + 1), "the pack is of an earlier round")
    must("verify", "--quiet", out)
    tally.demand(not temporary(out), f"left over: {temporary(out)}")
    return tally


def _start_together(raws: Sequence[Path], out: Path, storage: str) -> list[Builder]:
    """Start a process for each raw folder, wait until all have imported everything, and let them build."""
    options = ("build", "--quiet", "--workers", "1", "--format", storage, *SHARDS)
    waiting = [
        subprocess.Popen(
            [sys.executable, "-c", READY, *options, str(raw), str(out)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for raw in raws
    ]
    for process in waiting:
        assert process.stdout is not None
        process.stdout.readline()
    started = time.monotonic()
    for process in waiting:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends: dict[int, float] = {}
    while len(ends) < len(waiting):
        for process in waiting:
            if process.pid not in ends and process.poll() is not None:
                ends[process.pid] = time.monotonic() - started
        time.sleep(0.01)
    return [Builder(process.pid, process.returncode, *process.communicate(), ends[process.pid]) for process in waiting]


def _judge(tally: Tally, ended: Sequence[Builder], new: int, where: str) -> None:
    winners = {builder.process for builder in ended if builder.code == 0}
    losers = [builder for builder in ended if builder.code == BUSY]
    tally.counts.update(builders=len(ended), built=len(winners), refused=len(losers))
    for builder in ended:
        tally.demand(builder.code in (0, BUSY), f"{where}: exit code {builder.code}: {builder.errors}")
    tally.demand(bool(winners), f"{where}: no build succeeded")
    tally.demand(new == len(winners), f"{where}: {len(winners)} builds succeeded and {new} generations are new")
    changing = sorted(builder.changing for builder in ended if builder.code == 0)
    tally.demand(all(a[1] <= b[0] for a, b in pairwise(changing)), f"{where}: two builds changed the pack at once")
    for builder in losers:
        named = NAMED.search(builder.errors)
        tally.demand(named is not None, f"{where}: names no process: {builder.errors}")
        tally.demand(named is None or int(named[1]) in winners, f"{where}: names a wrong process: {builder.errors}")


def republish(root: Path, storage: str, publishes: int, readers: int) -> Tally:
    """Publish versions by builds and rollbacks, in turn, while other processes read."""
    raw, out = root / "raw", root / "out"
    options = ("build", "--quiet", "--workers", "1", "--format", storage, *SHARDS)
    make_version(raw, 1)
    must(*options, raw, out)
    spawn = multiprocessing.get_context("spawn")
    over, pipes = spawn.Event(), [spawn.Pipe(duplex=False) for _ in range(readers + 1)]
    started = [
        spawn.Process(target=read_along, args=(out, over, theirs, index == 0), daemon=True)
        for index, (_, theirs) in enumerate(pipes)
    ]
    for process in started:
        process.start()
    for ours, _ in pipes:
        ours.recv()
    tally = Tally()
    for number in range(publishes):
        if number % EVERY == 0:
            make_version(raw, 2 + number)
            must(*options, raw, out)
            tally.counts["builds"] += 1
        else:
            must("rollback", out, 1 + number * 7 % len(list((out / "generations").glob("*.json"))))
            tally.counts["rollbacks"] += 1
    over.set()
    for process, (ours, _) in zip(started, pipes, strict=True):
        tally.add(ours.recv())
        process.join()
    must("verify", "--quiet", out)
    tally.demand(Manifest.load(out).generation <= tally.counts["builds"] + 1, "more generations than builds")
    tally.demand(tally.counts["versions"] > readers, "the readers saw no change")
    return tally


def read_along(out: Path, over: Event, pipe: Connection, from_before: bool) -> None:
    """Open and read again and again until the end, or with `from_before` open once and read that data set."""
    tally, versions, first = Tally(), set(), open_dataset(out, CHANGING)
    pipe.send("ready")
    while not over.is_set() and not tally.broken:
        try:
            version = version_of(first if from_before else open_dataset(out, CHANGING))
        except Exception as error:  # noqa: BLE001 - any error is a finding
            tally.broken.append(f"a reader: {type(error).__name__}: {error}")
            break
        versions.add(version)
        tally.counts["reads of the first" if from_before else "reads"] += 1
    if from_before:
        tally.demand(versions <= {1}, f"a reader of version 1 saw {sorted(versions)}")
    else:
        tally.counts["versions"] += len(versions)
    pipe.send(tally)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--builders", type=int, default=8, help="builds that start together")
    options.add_argument("--rounds", type=int, default=5, help="rounds of each format")
    options.add_argument("--publishes", type=int, default=500, help="publications of all formats together")
    options.add_argument("--readers", type=int, default=4, help="processes that read at the same time")
    options.add_argument("--format", choices=("all", *STORAGES), default="all")
    chosen = options.parse_args()
    storages = STORAGES if chosen.format == "all" else (chosen.format,)
    tallies: dict[str, Tally] = {}
    for storage in storages:
        with tempfile.TemporaryDirectory() as folder:
            tallies[storage] = race(Path(folder) / "race", storage, chosen.builders, chosen.rounds)
            publishes = chosen.publishes // len(storages)
            tallies[storage].add(republish(Path(folder) / "again", storage, publishes, chosen.readers))
    finish(tallies)
