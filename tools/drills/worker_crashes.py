"""Kill or stop worker processes of a build, and let them run out of memory.

    tools/run drills.worker_crashes [--kills 100] [--hangs 30] [--ooms 30] [--servers 100] [--seed N]

A build continues and gives the bytes of an undisturbed one when workers are killed (SIGKILL) or stopped (SIGSTOP), and
when the fork server is killed. A
picture that needs more memory than there is becomes a reject with its name, and all other pictures are packed. A worker
that hangs between two pictures is given up after 300 s; here after the timeout of a picture.
"""

from __future__ import annotations

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
from program import parser
from scenes.pictures import write_picture
from scenes.tiny import COLOURS, HEIGHT, SHARDS, WIDTH, make_tiny

from drills.commands import must
from drills.processes import orphans, servers, start, workers
from drills.published import same, temporary
from drills.tally import Tally, finish
from readers import open_dataset
from readers.contract.manifest import STORAGES

TIMEOUT = 1
IMPATIENT = f"""
import packer.workers.supervisor
packer.workers.supervisor.PATIENCE = {TIMEOUT}
from packer.__main__ import main
main()
"""
SIGNALS, OOMS = 1, 3
"""Kills and large pictures in one build. There is one kill, because a pair at which two workers die is rejected."""
KILLS_OF_SERVER = 3
"""Kills of the server in one build. No pair is to blame for them."""
SIDE = 20_000
"""The side of a picture that needs more than MEMORY when it is decoded."""
MEMORY = 1_500_000_000
MOST = 120.0
"""Seconds after which a build counts as hanging."""

Victims = Callable[[subprocess.Popen[str]], list[int]]
"""The processes of a build that may get the signal."""


def disturb(
    root: Path, storage: str, number: signal.Signals, times: int, dice: random.Random, victims: Victims = workers
) -> Tally:
    """Build, send a signal to workers or to the fork server at random times, and compare with an undisturbed build."""
    tally, out = Tally(), root / "out"
    options = ("build", "--quiet", "--workers", "2", "--format", storage, *SHARDS, root / "raw", out)
    if number == signal.SIGSTOP:
        build = start((*options, "--task-timeout", TIMEOUT), ("-c", IMPATIENT))
    else:  # on a busy machine a picture may take longer than TIMEOUT
        build = start(options)
    for _ in range(times):
        tally.counts[number.name] += _send(build, number, dice, victims)
    try:
        _, errors = build.communicate(timeout=MOST)
    except subprocess.TimeoutExpired:
        os.killpg(build.pid, signal.SIGKILL)
        _, errors = build.communicate()
        tally.broken.append(f"{storage}, {number.name}: a build hangs")
    tally.demand(build.returncode == 0, f"{storage}, {number.name}: exit code {build.returncode}: {errors}")
    if build.returncode == 0:
        tally.demand(same(out, root / storage), f"{storage}, {number.name}: differs from an undisturbed build")
        tally.demand(not temporary(out), f"{storage}, {number.name}: left over: {temporary(out)}")
    left = orphans(build.pid, MOST)
    tally.demand(not left, f"{storage}, {number.name}: orphans {left}")
    tally.counts["builds"] += 1
    shutil.rmtree(out, ignore_errors=True)
    return tally


def _send(build: subprocess.Popen[str], number: signal.Signals, dice: random.Random, victims: Victims) -> bool:
    """Wait for a worker, then for a random time, and send a signal to one of the victims."""
    while build.poll() is None and not workers(build):
        time.sleep(0.005)
    time.sleep(dice.uniform(0, 0.3))
    running = victims(build)
    if not running:
        return False
    with suppress(ProcessLookupError):
        os.kill(dice.choice(running), number)
        return True
    return False


def starve(root: Path, storage: str, most: int, dice: random.Random) -> Tally:
    """Build from a raw folder with `most` pictures that need more memory than there is."""
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
        reported = [line for line in errors.splitlines() if "needs more memory than there is" in line]
        tally.demand(len(reported) == most, f"{where}: {len(reported)} of {most} are reported: {errors}")
        tally.demand(
            all(any(f"train/{victim}:" in line for line in reported) for victim in victims), f"{where}: {errors}"
        )
        dataset = open_dataset(out)
        keys = {dataset.key(row) for row in range(len(dataset))}
        tally.demand(len(keys) == count - most and not keys & set(victims), f"{where}: packed {sorted(keys)}")
    tally.counts.update({"out of memory": most, "builds": 1})
    shutil.rmtree(out, ignore_errors=True)
    return tally


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def make_folders(root: Path, pairs: int, large: bool) -> None:
    """Make the raw folder, an undisturbed build for each format and, if `large`, a picture too large for memory."""
    make_tiny(root / "raw", {"train": pairs, "val": 5})
    for storage in STORAGES:
        must("build", "--quiet", "--format", storage, *SHARDS, root / "raw", root / storage)
    if large:
        write_picture(root / "large_images.png", np.zeros((SIDE, SIDE, 3), np.uint8))
        write_picture(root / "large_masks.png", np.broadcast_to(COLOURS[1], (SIDE, SIDE, 3)))


def drill(kills: int, hangs: int, ooms: int, kills_of_server: int, pairs: int, dice: random.Random) -> dict[str, Tally]:
    """Run so many cases of each, with one format after the other."""
    tallies = {"kills": Tally(), "hangs": Tally(), "ooms": Tally(), "servers": Tally()}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_folders(root, pairs, large=ooms > 0)

        def until(name: str, count: str, wanted: int, act: Callable[[str], Tally]) -> None:
            tally = tallies[name]
            while tally.counts[count] < wanted and not tally.broken:
                tally.add(act(STORAGES[tally.counts["builds"] % len(STORAGES)]))

        until("kills", "SIGKILL", kills, lambda storage: disturb(root, storage, signal.SIGKILL, SIGNALS, dice))
        until("hangs", "SIGSTOP", hangs, lambda storage: disturb(root, storage, signal.SIGSTOP, SIGNALS, dice))
        until(
            "servers",
            "SIGKILL",
            kills_of_server,
            lambda storage: disturb(root, storage, signal.SIGKILL, KILLS_OF_SERVER, dice, servers),
        )
        until("ooms", "out of memory", ooms, lambda storage: starve(root, storage, OOMS, dice))
    return tallies


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=100, help="workers to kill")
    options.add_argument("--hangs", type=int, default=30, help="workers to stop")
    options.add_argument("--ooms", type=int, default=30, help="pictures that are too large for memory")
    options.add_argument("--servers", type=int, default=100, help="fork servers to kill")
    options.add_argument("--pairs", type=int, default=60, help="pairs in the raw folder")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="seed of workers and times")
    chosen = options.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    dice = random.Random(chosen.seed)
    finish(drill(chosen.kills, chosen.hangs, chosen.ooms, chosen.servers, chosen.pairs, dice))
