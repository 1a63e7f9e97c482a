"""Run jobs that may crash or hang: inspect pairs, build shards.

An engine runs jobs. `Supervisor` runs them in worker processes, `InProcess` in this process; the results are the same.
The same engine inspects the label sample and builds the shards, so the workers that answered the first do the second.

With at least two shards per core, each worker process builds a shard of its own in one thread. With fewer shards, one
process builds a shard at a time with a thread per core, so that a small data set uses every core, too. A worker reports
when its shard is decoded and it begins to write. Another worker then starts decoding, so no core waits for the disk.
Memory is one shard, at most twice `--shard-size`, for each process that decodes, and for those that write: a quarter as
many, at least one.

Workers are forked from a server process that has imported what they need and has no threads: 12 ms a worker instead of
400 ms. Parent and workers exchange JSON (messages.py). Each thread of a worker records in shared memory which pair it
works on (heartbeat.py). The supervisor sees a worker exit, kills one whose pair takes longer than `--task-timeout`,
and replaces both. A worker that is alive when the server ends goes on, and the next one starts another server. A
worker that runs out of memory exits at its pair and is handled like a crash. A worker that gives no sign of life for
300 s, for example because somebody stopped it, is replaced, too.

After a crash, all pairs of the shard are decoded in one thread, and decoding continues behind each pair at which a
worker crashes. These pairs are then tried alone. A pair at which two workers crashed while they worked on nothing else
becomes a reject (jobs.py). The shard is then built without it, so the reason is the same for any number of workers. If
no pair is to blame, the build ends after three more tries.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from packer.recipe.shard_spec import ShardSpec
from packer.workers.engine import Engine
from packer.workers.in_process import InProcess
from packer.workers.inspect import InspectRequest, LabelCounts
from packer.workers.jobs import InspectJob, ShardJob
from packer.workers.supervisor import Supervisor
from readers.contract.receipt import Receipt

__all__ = ["ENGINE", "Built", "Engine", "InProcess", "Supervisor", "build_shards", "inspect_pairs", "open_engine"]

Built = Generator[tuple[int, Receipt], None, None]
"""(index of the spec, receipt) of each finished shard; closing it stops the rest."""

ENGINE: Callable[[int, int], Engine] = Supervisor
"""The engine that `open_engine` opens. Tests that are not about processes set it to `InProcess`."""


@contextmanager
def open_engine(workers: int, task_timeout: int) -> Iterator[Engine]:
    """Open an engine for `workers` cores. A pair that takes longer than `task_timeout` seconds is a bad pair."""
    with closing(ENGINE(workers, task_timeout)) as engine:
        yield engine


def build_shards(specs: Sequence[ShardSpec], raw: Path, out: Path, engine: Engine) -> Built:
    """Build all shards: each in one thread if there are many, else one at a time in many threads."""
    many = engine.workers > 1 and len(specs) >= 2 * engine.workers
    at_once, threads = (engine.workers, 1) if many else (1, engine.workers)
    return engine.run((ShardJob(index, spec, raw, out, threads) for index, spec in enumerate(specs)), at_once)


def inspect_pairs(requests: Sequence[InspectRequest], raw: Path, engine: Engine) -> list[LabelCounts]:
    """Return the counts of all requests, in their order."""
    jobs = (InspectJob(index, request, raw) for index, request in enumerate(requests))
    with closing(engine.run(jobs, engine.workers)) as answers:
        return [counts for _, counts in sorted(answers, key=lambda answer: answer[0])]
