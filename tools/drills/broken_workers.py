"""Simulate a night on 500 workers of which a twentieth is broken: how many tasks do these draw, and does the night end?

    tools/run drills.broken_workers [--workers 500] [--broken 0.05] [--shards 100000]

No time passes. A scheduler gives each task to who is idle, as those of Dask and Ray do. A good worker takes 5 to 15 s
for a shard. A broken one fails in one of five ways: at once, after a second, only for two of three tasks, only in the
first ten minutes, or by losing the task: the engine does not name who had it.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

from program import parser

from drills.simulated_cluster import Outcome, SimulatedCluster, never
from packer.engines.build_task import wait_after
from packer.engines.submit import submit_all
from packer.engines.task import BuiltShard, Failed, Task, answer_text
from packer.workers.cluster_events import ClusterEvents

WAYS = ("at once", "after a second", "two of three", "at first", "lost")
FIRST, RESTART = 600.0, 3.0


class Night(SimulatedCluster):
    """A cluster of which some workers are broken."""

    def __init__(self, workers: int, broken: float, seed: int = 7, held_back: bool = True) -> None:
        super().__init__()
        self.dice, self.workers, self.held_back = random.Random(seed), workers, held_back
        self.ways = {number: WAYS[number % len(WAYS)] for number in range(round(workers * broken))}
        """The way in which each broken worker fails."""
        self.tasks = Counter[str]()
        """The tasks that good workers had, and those of each way to fail."""
        self._idle = list(range(workers))
        self._in_a_row = Counter[int]()

    def name(self, worker: int) -> str:
        """Return the name of a worker: its host and its ID."""
        return f"n{worker}/{worker}"

    @property
    def has_slot(self) -> bool:
        return bool(self._idle)

    def begin(self, task: Task) -> tuple[float, Callable[[], Outcome]]:
        worker = self._idle.pop(self.dice.randrange(len(self._idle)))
        seconds, outcome = self._outcome(worker, task)

        def end() -> Outcome:
            if self.name(worker) not in self.avoided:
                self._idle.append(worker)
            return outcome

        return seconds, end

    def _outcome(self, worker: int, task: Task) -> tuple[float, Outcome]:
        """Return how long a worker has a task, and what comes of it."""
        way, name = self.ways.get(worker, ""), self.name(worker)
        fails = bool(way) and not (way == "two of three" and self.dice.random() < 1 / 3)
        if way == "at first" and self.time > FIRST:
            fails = False
        self.tasks[way if fails else "good"] += 1
        if not fails:
            self._in_a_row.pop(worker, None)
            built = BuiltShard(f"{task.shard:032x}", "1" * 64, 1, 0, (), 1, name)
            return self.dice.uniform(5, 15), answer_text(built)
        self._in_a_row[worker] += 1
        if way == "lost":  # it is started again
            return RESTART, RuntimeError("the worker was lost")
        seconds = (1.0 if way == "after a second" else 0.01) + self.held_back * wait_after(self._in_a_row[worker])
        return seconds, answer_text(Failed(f"n{worker}: RAW is not there", name, passes=False))


def built(night: Night, shards: int) -> int:
    """Build this number of shards, and return how many came."""
    tasks = (Task("/plans/1", "a" * 64, number, "/out", None, 300) for number in range(shards))
    names = {str(number) for number in range(night.workers)}
    connection = night.connection(lambda: night.workers - len(night.avoided), lambda: names)
    return sum(1 for _ in submit_all(connection, never, tasks, ClusterEvents(), night))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=500)
    options.add_argument("--broken", type=float, default=0.05, help="their share")
    options.add_argument("--shards", type=int, default=100_000)
    options.add_argument("--at-once", action="store_true", help="failures are not kept back")
    chosen = options.parse_args()
    night = Night(chosen.workers, chosen.broken, held_back=not chosen.at_once)
    came = built(night, chosen.shards)
    failures = night.tasks.total() - night.tasks["good"]
    for way in WAYS:
        print(f"{way:<16} {night.tasks[way]:>8,} tasks failed")
    print(f"{failures:,} of {night.tasks.total():,} tasks failed ({failures / night.tasks.total():.2%})")
    ideal = chosen.shards * 10 / (chosen.workers - len(night.ways))
    print(f"{came:,} shards after {night.time:,.0f} s; the good workers alone need {ideal:,.0f} s")
    if came != chosen.shards:
        sys.exit("shards are missing")


if __name__ == "__main__":
    main()
