"""Drill: builders that all want the same pack at once, and readers of a pack that is published again and again.

    PYTHONPATH=tools python -m drills.builders [--builders 8] [--rounds 5] [--publishes 500] [--readers 4]

Builders are ready and waiting when they are let go, each with pictures of its own: those that do not get the lock must
exit 75 within seconds and name one that did, and there must be a new generation for each one that did. Readers that
open the pack while builds and rollbacks publish must see one version each time, and one that was opened before goes on
seeing its own.
"""

from __future__ import annotations

import argparse
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

from drills.commands import must
from drills.published import temporary
from drills.tally import Tally, finish
from drills.tiny import SHARDS
from drills.versions import CHANGING, make_version, read_version, version_of
from packer.errors import BusyError
from packer.packs.generations import list_generations
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest

SOON, FIRST_SOON = 60.0, 120.0
"""Seconds within which a builder must have been told that it cannot build; a pack that is not there yet has no lock
until somebody has planned what to put there, and all plan at once."""
READY = """
import sys, time
import packer.build
from packer.cli import main

def telling(does, first):
    def do(*arguments):
        if first:
            print(time.monotonic(), flush=True)
        done = does(*arguments)
        if not first:
            print(time.monotonic(), flush=True)
        return done
    return do

packer.build.prepare_target = telling(packer.build.prepare_target, True)
packer.build.commit = telling(packer.build.commit, False)
print("ready", flush=True)
sys.stdin.read(1)
main(sys.argv[1:], prog_name="packer")
"""
BUSY = BusyError.exit_code
NAMED = re.compile(r"is being changed by process (\d+) on ")
EVERY = 3
"""One publication in so many is a build, the others are rollbacks, which take less time."""


@dataclass(frozen=True)
class Builder:
    """One of those that were let go at once, when it had ended."""

    process: int
    code: int
    words: str
    errors: str
    seconds: float

    @property
    def changing(self) -> tuple[float, float]:
        """From when to when one that built was changing the pack."""
        begin, end = self.words.split()[:2]
        return float(begin), float(end)


def race(root: Path, storage: str, builders: int, rounds: int) -> Tally:
    """Let builders go at once on one pack, several times."""
    out, tally, version = root / "out", Tally(), 0
    for number in range(rounds):
        raws = []
        for place in range(builders):
            version += 1
            raws.append(root / f"raw{place}")
            make_version(raws[-1], version)
        before = len(list_generations(out)) if (out / "generations").is_dir() else 0
        ended = _let_go(raws, out, storage)
        _judge(tally, ended, len(list_generations(out)) - before, f"{storage}, round {number}")
        told = max((one.seconds for one in ended if one.code == BUSY), default=0.0)
        print(f"{storage:<6}round {number}: the last was told after {told:.1f} s", flush=True)
        tally.demand(told < (SOON if number else FIRST_SOON), f"{storage}, round {number}: told after {told:.1f} s")
        tally.demand(read_version(out) in range(version - builders + 1, version + 1), "the pack is none of a winner")
    must("verify", "--quiet", out)
    tally.demand(not temporary(out), f"left lying about: {temporary(out)}")
    return tally


def _let_go(raws: Sequence[Path], out: Path, storage: str) -> list[Builder]:
    """Start a builder for each raw folder, wait until all have imported everything, and let them build."""
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
    for one in waiting:
        assert one.stdout is not None
        one.stdout.readline()
    started = time.monotonic()
    for one in waiting:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    ends: dict[int, float] = {}
    while len(ends) < len(waiting):
        ends |= {
            one.pid: time.monotonic() - started for one in waiting if one.pid not in ends and one.poll() is not None
        }
        time.sleep(0.01)
    return [Builder(one.pid, one.returncode, *one.communicate(), ends[one.pid]) for one in waiting]


def _judge(tally: Tally, ended: Sequence[Builder], new: int, where: str) -> None:
    winners = {one.process for one in ended if one.code == 0}
    losers = [one for one in ended if one.code == BUSY]
    tally.counts.update(builders=len(ended), built=len(winners), told=len(losers))
    for one in ended:
        tally.demand(one.code in (0, BUSY), f"{where}: exit code {one.code}: {one.errors}")
    tally.demand(bool(winners), f"{where}: nobody built")
    tally.demand(new == len(winners), f"{where}: {len(winners)} built and {new} generations are new")
    changing = sorted(one.changing for one in ended if one.code == 0)
    tally.demand(all(a[1] <= b[0] for a, b in pairwise(changing)), f"{where}: two were changing the pack at once")
    for one in losers:
        named = NAMED.search(one.errors)
        tally.demand(named is not None, f"{where}: names nobody: {one.errors}")
        tally.demand(named is None or int(named[1]) in winners, f"{where}: names somebody else: {one.errors}")


def republish(root: Path, storage: str, publishes: int, readers: int) -> Tally:
    """Publish versions by builds and rollbacks, in turn, while others read."""
    raw, out = root / "raw", root / "out"
    options = ("build", "--quiet", "--workers", "1", "--format", storage, *SHARDS)
    make_version(raw, 1)
    must(*options, raw, out)
    spawn = multiprocessing.get_context("spawn")
    over, pipes = spawn.Event(), [spawn.Pipe(duplex=False) for _ in range(readers + 1)]
    started = [
        spawn.Process(target=read_along, args=(out, over, theirs, place == 0), daemon=True)
        for place, (_, theirs) in enumerate(pipes)
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
    tally.demand(tally.counts["seen"] > readers, "the readers saw nothing change")
    return tally


def read_along(out: Path, over: Event, pipe: Connection, from_before: bool) -> None:
    """A reader: open and read until it is over; or open once, and read that one all the time."""
    tally, seen, held = Tally(), set(), open_dataset(out, CHANGING)
    pipe.send("ready")
    while not over.is_set() and not tally.broken:
        try:
            version = version_of(held if from_before else open_dataset(out, CHANGING))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no version
            tally.broken.append(f"a reader: {type(error).__name__}: {error}")
            break
        seen.add(version)
        tally.counts["reads of one from before" if from_before else "reads"] += 1
    if from_before:
        tally.demand(seen <= {1}, f"a reader of version 1 saw {sorted(seen)}")
    else:
        tally.counts["seen"] += len(seen)
    pipe.send(tally)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builders", type=int, default=8, help="how many want to build at once")
    parser.add_argument("--rounds", type=int, default=5, help="how often, for each format")
    parser.add_argument("--publishes", type=int, default=500, help="how many in all, shared among the formats")
    parser.add_argument("--readers", type=int, default=4, help="how many read meanwhile")
    parser.add_argument("--format", choices=("all", *STORAGES), default="all")
    chosen = parser.parse_args()
    storages = STORAGES if chosen.format == "all" else (chosen.format,)
    tallies: dict[str, Tally] = {}
    for storage in storages:
        with tempfile.TemporaryDirectory() as folder:
            tallies[storage] = race(Path(folder) / "race", storage, chosen.builders, chosen.rounds)
            publishes = chosen.publishes // len(storages)
            tallies[storage].add(republish(Path(folder) / "again", storage, publishes, chosen.readers))
    finish(tallies)


if __name__ == "__main__":
    main()
