"""Drill: worker processes are killed, stopped, and run out of memory while they build.

    PYTHONPATH=tools python -m drills.workers [--kills 100] [--hangs 30] [--ooms 30] [--seed N]

Builds go on and give an unbroken build's bytes, however workers are killed (SIGKILL) or stopped (SIGSTOP) at any time;
a picture that memory does not suffice for is left out by its name, and the others are packed: as many as went in. A
worker that is stopped while it has no picture in work is given up after 300 s; here after as many as a picture has.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from drills.commands import must
from drills.processes import orphans, start, workers
from drills.published import same, temporary
from drills.tally import Tally, finish
from drills.tiny import COLOURS, HEIGHT, SHARDS, WIDTH, make_tiny, write_png
from readers import open_dataset
from readers.contract.manifest import STORAGES

TIMEOUT = 1
IMPATIENT = f"""
import packer.workers.supervisor
packer.workers.supervisor.PATIENCE = {TIMEOUT}
from packer.__main__ import main
main()
"""
BLOWS, OOMS = 1, 3
"""How many there are in one build: a pair at which workers are killed twice is rightly left out."""
SIDE = 20_000
"""Of a picture that takes more than MEMORY when it is decoded."""
MEMORY = 1_500_000_000
MOST = 120.0
"""Seconds after which a build hangs."""


def afflict(root: Path, storage: str, what: signal.Signals, times: int, dice: random.Random) -> Tally:
    """Build, send this signal to workers at random times, and compare with an unbroken build."""
    tally, out = Tally(), root / "out"
    options = ("build", "--quiet", "--workers", "2", "--task-timeout", TIMEOUT, "--format", storage, *SHARDS)
    build = start((*options, root / "raw", out), ("-c", IMPATIENT))
    for _ in range(times):
        tally.counts[what.name] += _send(build, what, dice)
    try:
        _, errors = build.communicate(timeout=MOST)
    except subprocess.TimeoutExpired:
        os.killpg(build.pid, signal.SIGKILL)
        _, errors = build.communicate()
        tally.broken.append(f"{storage}, {what.name}: a build hangs")
    tally.demand(build.returncode == 0, f"{storage}, {what.name}: exit code {build.returncode}: {errors}")
    if build.returncode == 0:
        tally.demand(same(out, root / storage), f"{storage}, {what.name}: not what an unbroken build gives")
        tally.demand(not temporary(out), f"{storage}, {what.name}: left lying about: {temporary(out)}")
    left = orphans(build.pid, MOST)
    tally.demand(not left, f"{storage}, {what.name}: orphans {left}")
    tally.counts["builds"] += 1
    shutil.rmtree(out, ignore_errors=True)
    return tally


def _send(build: subprocess.Popen[str], what: signal.Signals, dice: random.Random) -> bool:
    """Wait for a worker, then for a random time, and send a signal to one of those that there are then."""
    while build.poll() is None and not workers(build):
        time.sleep(0.005)
    time.sleep(dice.uniform(0, 0.3))
    there = workers(build)
    if not there:
        return False
    with suppress(ProcessLookupError):
        os.kill(dice.choice(there), what)
        return True
    return False


def starve(root: Path, storage: str, most: int, dice: random.Random) -> Tally:
    """Build with pictures that take more memory than there is, from a raw folder that has `most` of them."""
    tally, raw, out = Tally(), root / "hungry", root / "out"
    count = 10
    shutil.rmtree(raw, ignore_errors=True)
    make_tiny(raw, {"train": count})
    victims = dice.sample([f"street_{number:03}" for number in range(count)], most)
    for kind in ("images", "masks"):
        for victim in victims:
            path = raw / "train" / kind / f"{victim}.png"
            path.unlink()
            path.hardlink_to(root / f"large_{kind}.png")
    size = ("--size", f"{HEIGHT}x{WIDTH}", "--max-pixels", SIDE * SIDE)
    options = ("build", "--quiet", "--on-bad", "skip", "--workers", "2", "--format", storage, *size, *SHARDS)
    build = start((*options, raw, out), limit=_little_memory)
    _, errors = build.communicate(timeout=MOST)
    where = f"{storage}, out of memory"
    tally.demand(build.returncode == 0, f"{where}: exit code {build.returncode}: {errors}")
    if build.returncode == 0:
        told = [line for line in errors.splitlines() if "needs more memory than there is" in line]
        tally.demand(len(told) == most, f"{where}: {len(told)} of {most} are told: {errors}")
        tally.demand(all(any(f"train/{one}:" in line for line in told) for one in victims), f"{where}: {errors}")
        dataset = open_dataset(out)
        keys = {dataset.key(row) for row in range(len(dataset))}
        tally.demand(len(keys) == count - most and not keys & set(victims), f"{where}: packed {sorted(keys)}")
    tally.counts.update({"out of memory": most, "builds": 1})
    shutil.rmtree(out, ignore_errors=True)
    return tally


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def make_stage(root: Path, pairs: int, large: bool) -> None:
    """Write the raw folder, an unbroken build of it for each format and, if `large`, a picture too large for memory."""
    make_tiny(root / "raw", {"train": pairs, "val": 5})
    for storage in STORAGES:
        must("build", "--quiet", "--format", storage, *SHARDS, root / "raw", root / storage)
    if large:
        write_png(root / "large_images.png", np.zeros((SIDE, SIDE, 3), np.uint8))
        write_png(root / "large_masks.png", np.broadcast_to(COLOURS[1], (SIDE, SIDE, 3)))


def drill(kills: int, hangs: int, ooms: int, pairs: int, dice: random.Random) -> dict[str, Tally]:
    """So many of each, with a format after the other."""
    tallies = {"kills": Tally(), "hangs": Tally(), "ooms": Tally()}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_stage(root, pairs, large=ooms > 0)

        def until(name: str, what: str, wanted: int, act: Callable[[str], Tally]) -> None:
            tally = tallies[name]
            while tally.counts[what] < wanted and not tally.broken:
                tally.add(act(STORAGES[tally.counts["builds"] % len(STORAGES)]))

        until("kills", "SIGKILL", kills, lambda storage: afflict(root, storage, signal.SIGKILL, BLOWS, dice))
        until("hangs", "SIGSTOP", hangs, lambda storage: afflict(root, storage, signal.SIGSTOP, BLOWS, dice))
        until("ooms", "out of memory", ooms, lambda storage: starve(root, storage, OOMS, dice))
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how many workers are killed")
    parser.add_argument("--hangs", type=int, default=30, help="how many are stopped")
    parser.add_argument("--ooms", type=int, default=30, help="how many pictures are too large for memory")
    parser.add_argument("--pairs", type=int, default=60, help="how many are packed")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="which workers, and when")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    finish(drill(chosen.kills, chosen.hangs, chosen.ooms, chosen.pairs, random.Random(chosen.seed)))


if __name__ == "__main__":
    main()
