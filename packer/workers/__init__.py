"""Engines: how many processes build the shards, with how many threads each. Receipts come as shards are done."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

from packer.recipe.shard_spec import ShardSpec
from packer.workers.inspect import Glance, Question
from packer.workers.jobs import GlanceCase, ShardCase
from packer.workers.process import warm_up
from packer.workers.supervisor import Supervisor
from readers.contract.receipt import Receipt

__all__ = ["TASK_TIMEOUT", "Built", "build_shards", "glances", "warm_up"]

Built = Generator[tuple[int, Receipt], None, None]
"""(number of the spec, receipt) as shards are done; closing it stops the rest."""


def build_shards(specs: Sequence[ShardSpec], raw: Path, out: Path, workers: int, task_timeout: int) -> Built:
    """Build all shards on `workers` cores: a process per core where shards are plenty, else threads of one process."""
    plenty = workers > 1 and len(specs) >= 2 * workers
    processes, threads = (workers, 1) if plenty else (1, workers)
    cases = (ShardCase(number, spec) for number, spec in enumerate(specs))
    return Supervisor[Receipt](raw, out, processes, threads, task_timeout).run(cases)


def glances(questions: Sequence[Question], raw: Path, workers: int, task_timeout: int) -> list[Glance]:
    """The answers to all questions. A decoder that crashes or hangs harms a worker, not this process."""
    supervisor = Supervisor[Glance](raw, None, workers, 1, task_timeout)
    cases = (GlanceCase(number, question) for number, question in enumerate(questions))
    with closing(supervisor.run(cases)) as answers:
        return [glance for _, glance in sorted(answers, key=lambda answer: answer[0])]
