"""Drill: builds are told to end, at random times, by SIGTERM, SIGINT and SIGHUP, alone or with all their processes.

    PYTHONPATH=tools python -m drills.signals [--count 200] [--seed N]

Each must exit within seconds with the code of the signal (or 0, when it was done), leave no process behind, publish
nothing that it does not speak of; and the next build must be an unbroken one, byte for byte, with nothing left lying
about. Half of the builds are first builds, the others the next night's of a pack that is there.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from drills.commands import must
from drills.processes import orphans, start
from drills.published import same, temporary
from drills.tally import Tally, finish
from drills.tiny import SHARDS, add_pair, make_tiny
from readers.contract.manifest import MANIFEST, STORAGES

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SOON = 60.0
"""Seconds within which a build must have ended, and all its processes."""
SAID = "everything was published before"


@dataclass(frozen=True)
class Stage:
    """A raw folder, a pack of how it was before, and what a build makes of how it is now."""

    raw: Path
    before: Path
    after: Path
    storage: str
    seconds: float
    """How long a build takes from the start of its process."""

    @property
    def options(self) -> tuple[object, ...]:
        return ("build", "--quiet", "--workers", "2", "--format", self.storage, *SHARDS, self.raw)


def make_stage(root: Path, storage: str, pairs: int) -> Stage:
    """Make one below `root`."""
    stage = Stage(root / "raw", root / "before", root / "after", storage, 0)
    make_tiny(stage.raw, {"train": pairs, "val": 3})
    must(*stage.options, stage.before)
    for number in range(pairs):
        if number % 2:
            add_pair(stage.raw, "train", f"street_{number:03}", 5000 + number)
    seconds = 0.0
    for _ in range(2):  # the first warms the disk up
        shutil.rmtree(stage.after, ignore_errors=True)
        started = time.monotonic()
        build = start((*stage.options, stage.after))
        _, errors = build.communicate()
        if build.returncode:
            raise RuntimeError(errors)
        seconds = time.monotonic() - started
    return Stage(stage.raw, stage.before, stage.after, storage, seconds)


def interrupt(stage: Stage, out: Path, dice: random.Random) -> Tally:
    """Start a build, tell it to end at some time, and look at what it leaves."""
    tally, kind, to_all, again = Tally(), dice.choice(SIGNALS), dice.random() < 0.5, dice.random() < 0.5
    if again:
        shutil.copytree(stage.before, out)
    before = manifest(out)
    moment = dice.uniform(0, stage.seconds)
    build = start((*stage.options, out))
    where = f"{stage.storage}: {kind.name} to {'all' if to_all else 'one'} after {moment:.3f} s"
    time.sleep(moment)
    if build.poll() is None:
        os.killpg(build.pid, kind) if to_all else build.send_signal(kind)
    told = time.monotonic()
    try:
        _, errors = build.communicate(timeout=SOON)
    except subprocess.TimeoutExpired:
        os.killpg(build.pid, signal.SIGKILL)
        _, errors = build.communicate()
        tally.broken.append(f"{where}: still there after {SOON} s")
    left = orphans(build.pid, max(0.0, SOON - (time.monotonic() - told)))
    tally.demand(not left, f"{where}: orphans {left}")
    early = _early(build.returncode, errors) and moment < stage.seconds / 2
    _judge(tally, kind, early, build.returncode, errors, manifest(out) != before, where)
    must(*stage.options, out)
    tally.demand(not temporary(out), f"{where}: left lying about: {temporary(out)}")
    tally.demand(same(out, stage.after), f"{where}: the next build is not an unbroken one")
    shutil.rmtree(out)
    return tally


def manifest(out: Path) -> bytes | None:
    """The current manifest."""
    path = out / MANIFEST
    return path.read_bytes() if path.is_file() else None


def _early(code: int, errors: str) -> bool:
    """Whether Python itself was ended as it started, before a line of ours had run."""
    return code < 0 or (code == 1 and "KeyboardInterrupt" in errors and "packer" not in errors)


def _judge(tally: Tally, kind: signal.Signals, early: bool, code: int, errors: str, new: bool, where: str) -> None:
    tally.counts.update([kind.name, "as Python starts" if early else "done" if code == 0 else "ended"])
    tally.counts["published, and said so"] += new and code > 0
    tally.demand(early or code in (0, 128 + kind), f"{where}: exit code {code}: {errors}")
    if early:
        tally.demand(not new, f"{where}: published, and did not say so")
    elif code == 0:
        tally.demand(new, f"{where}: exit code 0, and nothing was published")
    else:
        tally.demand((SAID in errors) == new, f"{where}: published {new}, and it says {errors}")
        tally.demand("Traceback" not in errors, f"{where}: {errors}")


def drill(storage: str, count: int, pairs: int, dice: random.Random) -> Tally:
    """Interrupt so many builds of one format."""
    with tempfile.TemporaryDirectory() as folder:
        stage, tally = make_stage(Path(folder), storage, pairs), Tally()
        for _ in range(count):
            tally.add(interrupt(stage, Path(folder) / "out", dice))
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many signals, shared among the formats")
    parser.add_argument("--pairs", type=int, default=20, help="how many are packed")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="which signals, and when")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    dice, count = random.Random(chosen.seed), chosen.count // len(STORAGES)
    finish({storage: drill(storage, count, chosen.pairs, dice) for storage in STORAGES})


if __name__ == "__main__":
    main()
