"""Send SIGTERM, SIGINT or SIGHUP to builds at random times, to one process or to all.

    tools/run drills.signals [--count 200] [--seed N]

Each build must exit within seconds with the code of the signal, or with 0 if it was finished. It must leave no process
behind, and report it if it has published. The next build must give the bytes of an undisturbed one and leave no
temporary file. Half of the builds are first builds, the others update a pack.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from program import parser
from scenes.tiny import SHARDS, add_pair, make_tiny

from drills.commands import must
from drills.processes import orphans, start
from drills.published import same, temporary
from drills.tally import Tally, finish
from readers.contract.manifest import MANIFEST, STORAGES

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SOON = 60.0
"""Seconds within which a build and all its processes must end."""
REPORTED = "everything was published before"


@dataclass(frozen=True)
class Setup:
    """A raw folder, a pack of its earlier state, and a pack of its current state."""

    raw: Path
    before: Path
    after: Path
    storage: str
    seconds: float
    """The time of a build from the start of its process."""

    @property
    def options(self) -> tuple[object, ...]:
        return ("build", "--quiet", "--workers", "2", "--format", self.storage, *SHARDS, self.raw)


def make_setup(root: Path, storage: str, pairs: int) -> Setup:
    """Make all three below `root`."""
    setup = Setup(root / "raw", root / "before", root / "after", storage, 0)
    make_tiny(setup.raw, {"train": pairs, "val": 3})
    must(*setup.options, setup.before)
    for number in range(pairs):
        if number % 2:
            add_pair(setup.raw, "train", f"street_{number:03}", 5000 + number)
    seconds = 0.0
    for _ in range(2):  # the first run warms the page cache
        shutil.rmtree(setup.after, ignore_errors=True)
        started = time.monotonic()
        build = start((*setup.options, setup.after))
        _, errors = build.communicate()
        if build.returncode:
            raise RuntimeError(errors)
        seconds = time.monotonic() - started
    return Setup(setup.raw, setup.before, setup.after, storage, seconds)


def interrupt(setup: Setup, out: Path, dice: random.Random) -> Tally:
    """Start a build, send a signal at some time, and check what the build leaves."""
    tally, kind, to_all, update = Tally(), dice.choice(SIGNALS), dice.random() < 0.5, dice.random() < 0.5
    if update:
        shutil.copytree(setup.before, out)
    before = manifest(out)
    moment = dice.uniform(0, setup.seconds)
    build = start((*setup.options, out))
    where = f"{setup.storage}: {kind.name} to {'all' if to_all else 'one'} after {moment:.3f} s"
    time.sleep(moment)
    if build.poll() is None:
        os.killpg(build.pid, kind) if to_all else build.send_signal(kind)
    sent = time.monotonic()
    try:
        _, errors = build.communicate(timeout=SOON)
    except subprocess.TimeoutExpired:
        os.killpg(build.pid, signal.SIGKILL)
        _, errors = build.communicate()
        tally.broken.append(f"{where}: still running after {SOON} s")
    left = orphans(build.pid, max(0.0, SOON - (time.monotonic() - sent)))
    tally.demand(not left, f"{where}: orphans {left}")
    early = _early(build.returncode, errors) and moment < setup.seconds / 2
    _judge(tally, kind, early, build.returncode, errors, manifest(out) != before, where)
    must(*setup.options, out)
    tally.demand(not temporary(out), f"{where}: left over: {temporary(out)}")
    tally.demand(same(out, setup.after), f"{where}: the next build differs from an undisturbed one")
    shutil.rmtree(out)
    return tally


def manifest(out: Path) -> bytes | None:
    """Return the bytes of the current manifest."""
    path = out / MANIFEST
    return path.read_bytes() if path.is_file() else None


def _early(code: int, errors: str) -> bool:
    """Return True if the signal ended Python itself during its start, before the packer ran."""
    return code < 0 or (code == 1 and "KeyboardInterrupt" in errors and "packer" not in errors)


def _judge(tally: Tally, kind: signal.Signals, early: bool, code: int, errors: str, new: bool, where: str) -> None:
    tally.counts.update([kind.name, "as Python starts" if early else "done" if code == 0 else "ended"])
    tally.counts["published and reported"] += new and code > 0
    tally.demand(early or code in (0, 128 + kind), f"{where}: exit code {code}: {errors}")
    if early:
        tally.demand(not new, f"{where}: published without a report")
    elif code == 0:
        tally.demand(new, f"{where}: exit code 0, but nothing was published")
    else:
        tally.demand((REPORTED in errors) == new, f"{where}: published: {new}, but it prints {errors}")
        tally.demand("Traceback" not in errors, f"{where}: {errors}")


def drill(storage: str, count: int, pairs: int, dice: random.Random) -> Tally:
    """Interrupt `count` builds of one format."""
    with tempfile.TemporaryDirectory() as folder:
        setup, tally = make_setup(Path(folder), storage, pairs), Tally()
        for _ in range(count):
            tally.add(interrupt(setup, Path(folder) / "out", dice))
    return tally


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=200, help="signals to all formats together")
    options.add_argument("--pairs", type=int, default=20, help="pairs in the raw folder")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="seed of signals and times")
    chosen = options.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    dice, count = random.Random(chosen.seed), chosen.count // len(STORAGES)
    finish({storage: drill(storage, count, chosen.pairs, dice) for storage in STORAGES})
