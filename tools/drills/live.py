"""Disturb trainings, and the builder of the pack that they read, at random times.

    tools/run drills.live [--rounds 300] [--seed 1] [--event "the builder twice"]

Two programs read an epoch of a pack that is built while they read. At a random time one of EVENTS happens; killed
programs are started again. In the end they must have read every row once, with the pixels that `packer build` packs,
and the pack must have the same bytes as its. A program that read on after a kill must have had the pack published.
Nothing unfinished may be left. Exits 1 if any of this fails. The programs are forked: none imports PyTorch for seconds.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from program import parser
from scenes.noise import write_noise

from drills.crash_cases import leftovers
from drills.live_trainings import CLASSES, OPTIONS, PATIENCE, RANKS, SIDE, Ending, Task, Training, builders_of, children
from packer import build_pack
from readers.contract.manifest import GENERATIONS, LOCK, MANIFEST, Manifest
from readers.stores.locks import is_locked

PAIRS = 120
MARGIN = 0.2
"""Seconds after a kill in which a program may still see the locks of the killed process."""
TWO_RANKS = tuple(Task(rank) for rank in range(RANKS))
BUSY = (Task(0, pause=0.15), Task(1))
TWO_ORDERS = (Task(0, 1), Task(0, 1, shuffle=True))


@dataclass(frozen=True)
class Moment:
    """Some seconds after the start, or the time at which the builder has written some files: rare moments come, too."""

    seconds: float
    files: int | None

    def wait(self, out: Path) -> None:
        """Wait for the moment; for some files at most until the seconds have passed ten times."""
        until = time.monotonic() + self.seconds * (1 if self.files is None else 10)
        while time.monotonic() < until and (self.files is None or written(out) < self.files):
            time.sleep(0.001)

    def __str__(self) -> str:
        return f"after {self.seconds:.3f} s" if self.files is None else f"after {self.files} files"


@dataclass
class Scene:
    """The programs of a round, and what happens to them at a moment."""

    raw: Path
    out: Path
    dice: random.Random
    moment: Moment
    trainings: list[Training] = field(default_factory=list)
    killed: float = 0
    """The time of the last kill of the builder."""
    other: Ending | None = None
    """The end of a program with other options."""

    def start(self, tasks: Iterable[Task]) -> None:
        self.trainings += [Training(self.raw, self.out, task) for task in tasks]

    def kill(self, processes: Iterable[int]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.killed = time.monotonic()

    def kill_builder(self) -> None:
        self.kill(builders_of(self.out))

    def kill_worker(self) -> None:
        self.kill([child for builder in builders_of(self.out) for child in children(builder)][-1:])

    def kill_rank(self) -> None:
        self.dice.choice(self.trainings).send(signal.SIGKILL)

    def kill_ranks(self) -> None:
        for training in self.trainings:
            training.send(signal.SIGKILL)

    def kill_all(self) -> None:
        self.kill_ranks()
        builders = builders_of(self.out)
        self.kill([*builders, *(child for builder in builders for child in children(builder))])

    def kill_twice(self) -> None:
        self.kill_builder()
        time.sleep(self.dice.uniform(0, 1.5))
        self.kill_builder()

    def stop_rank(self) -> None:
        stopped = self.dice.choice(self.trainings)
        stopped.send(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.5, 2))
        stopped.send(signal.SIGCONT)

    def start_late(self) -> None:
        self.start([Task(1)])

    def start_other(self) -> None:
        """Start a training with another size, which is refused until the pack is published."""
        if all(training.has_opened() for training in self.trainings):
            self.other = Training(self.raw, self.out, Task(is_other=True)).ending()


EVENTS: dict[str, tuple[tuple[Task, ...], Callable[[Scene], None]]] = {
    "a rank": (TWO_RANKS, Scene.kill_rank),
    "both ranks": (TWO_RANKS, Scene.kill_ranks),
    "the builder": (TWO_RANKS, Scene.kill_builder),
    "the builder twice": (TWO_RANKS, Scene.kill_twice),
    "the builder of a busy rank": (BUSY, Scene.kill_builder),
    "the builder of two orders": (TWO_ORDERS, Scene.kill_builder),
    "a worker": (TWO_RANKS, Scene.kill_worker),
    "all": (TWO_RANKS, Scene.kill_all),
    "a stopped rank": (TWO_RANKS, Scene.stop_rank),
    "a late rank": ((Task(0),), Scene.start_late),
    "other options": (TWO_RANKS, Scene.start_other),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--event", choices=EVENTS)
    chosen = options.parse_args()
    dice, wrong, seen = random.Random(chosen.seed), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        raw, out = Path(temporary) / "raw", Path(temporary) / "out"
        for number in range(PAIRS):
            write_noise(raw, f"{number:04}", (SIDE, SIDE), CLASSES, number)
        build_pack(raw, out.with_name("built"), **OPTIONS)
        expected = Training(raw, out.with_name("built"), Task(0, 1)).ending().rows
        started = time.monotonic()
        Training(raw, out, Task(0, 1)).ending()
        wait_for_end(out)
        longest = time.monotonic() - started
        for _ in range(chosen.rounds):
            remove(out)
            event = chosen.event or dice.choice([*EVENTS])
            seen[event] += 1
            most = written(out.with_name("built"))
            files = dice.choice([None, dice.randint(1, most), most - dice.randint(0, 4)])
            scene = Scene(raw, out, dice, Moment(dice.uniform(0, longest), files))
            fault = disturbed(scene, *EVENTS[event], expected)
            if fault is not None:
                wrong += 1
                print(f"{event}, {scene.moment}: {fault}", flush=True)
    print(f"{chosen.rounds} rounds, {wrong} wrong: {', '.join(f'{seen[name]} of {name}' for name in EVENTS)}")
    sys.exit(wrong > 0)


def disturbed(
    scene: Scene, tasks: tuple[Task, ...], event: Callable[[Scene], None], expected: tuple[int, ...]
) -> str | None:
    """Let the event happen. Return what is wrong with the rows that were read, or with the pack."""
    scene.start(tasks)
    scene.moment.wait(scene.out)
    event(scene)
    endings = [training.ending() for training in scene.trainings]
    wait_for_end(scene.out)
    refusals = [ending.refusal for ending in endings if ending.refusal]
    if refusals:
        return f"refused: {refusals[0]}"
    epochs = sum(1 / training.task.ranks for training in scene.trainings)
    wanted, rows = Counter([*expected] * round(epochs)), Counter(row for ending in endings for row in ending.rows)
    if rows != wanted:
        return f"{(wanted - rows).total()} rows were not read, {(rows - wanted).total()} more than once"
    must_be_published = max(ending.time for ending in endings) > scene.killed + MARGIN
    return fault_of(scene.out, must_be_published, scene.other)


def fault_of(out: Path, must_be_published: bool, other: Ending | None) -> str | None:
    """Return what is wrong with the pack."""
    built = out.with_name("built")
    if must_be_published and not (out / MANIFEST).exists():
        return "was not published"
    if not must_be_published:
        build_pack(out.with_name("raw"), out, **OPTIONS)  # the next start removes what the kill has left
    if other is not None and other.refusal and "other options" not in other.refusal:
        return f"other options: {other.refusal}"
    numbers = [path.stem for path in (out / GENERATIONS).glob("[0-9]*.json")]
    if not any(Manifest.load(out, int(number)).same_data(Manifest.load(built)) for number in numbers):
        return "the pack is another one"
    files, expected = files_of(out), files_of(built)
    further = [] if other is not None and not other.refusal else [*(files.keys() - expected.keys())]
    if further or any(files.get(name) != data for name, data in expected.items()):
        return f"the files are others: {further}"
    left = leftovers(out)
    return f"left over: {left}" if left else None


def files_of(out: Path) -> dict[str, bytes]:
    """Return the files that readers of a pack read."""
    paths = [*out.glob("shards/*"), *out.glob("cells/*"), *(out / GENERATIONS).glob("shards-*")]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def written(out: Path) -> int:
    """Return how many files a builder has written."""
    return sum(1 for folder in ("shards", "cells", GENERATIONS, "") for path in (out / folder).glob("[a-z0-9]*"))


def remove(out: Path) -> None:
    """Remove a pack, into which workers of a killed builder may write for a moment."""
    until = time.monotonic() + PATIENCE
    while out.exists():
        try:
            shutil.rmtree(out)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def wait_for_end(out: Path) -> None:
    """Wait until no builder is left. One that ends has its lock a moment longer than its name."""
    until = time.monotonic() + PATIENCE
    while builders_of(out) or is_locked(out / LOCK):
        if time.monotonic() > until:
            raise SystemExit(f"a builder of {out} does not end")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
