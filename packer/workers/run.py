"""Open a pool, and give it shards to build or pairs to inspect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.recipe.field_rule import FieldRule
from packer.recipe.ref_table import RefTable
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.shards.alike_heads import AlikeHeads
from packer.shards.inspect import InspectRequest, LabelCounts
from packer.shards.measure import MeasuredRow
from packer.workers.jobs import HeadsJob, InspectJob, MeasureJob, OneTry, ShardJob, Urgent, nothing_urgent
from packer.workers.pool import Pool
from packer.workers.supervisor import Supervisor
from readers.contract.receipt import Receipt

Built = Generator[tuple[int, Receipt], None, None]
"""(index of the spec, receipt) of each finished shard; closing it stops the rest."""

HEADS_AT_ONCE = 1 << 11
"""Rows whose headers one task reads: a tenth of a second, if the files are in memory."""

POOL: Callable[[int, int], Pool] = Supervisor
"""The pool that `open_pool` opens. Tests that are not about processes set it to `InProcess`."""


@contextmanager
def open_pool(workers: int, task_timeout: int) -> Iterator[Pool]:
    """Open a pool for `workers` cores. A pair that takes longer than `task_timeout` seconds is a bad pair."""
    with closing(POOL(workers, task_timeout)) as pool:
        yield pool


def build_shards(
    specs: Sequence[ShardSpec],
    source: Source,
    out: Path,
    pool: Pool,
    rewrite: bool = False,
    urgent: Urgent = nothing_urgent,
) -> Built:
    """Build all shards, the wanted ones first, then the largest: the last ones then end at nearly the same time.

    With `rewrite`, the files of a shard are written although they are there, because their bytes are damaged.
    """
    order = sorted(range(len(specs)), key=lambda index: -specs[index].weight)
    text = source.to_text()
    jobs = (ShardJob(index, specs[index], text, out, rewrite) for index in order)
    return pool.run(jobs, pool.workers, urgent)


def build_one(spec: ShardSpec, source: Source, out: Path, pool: Pool) -> Receipt:
    """Build one shard that a caller waits for. Raises EngineError if a worker crashes at it, or takes too long."""
    with closing(pool.run([OneTry(0, spec, source.to_text(), out)], 1)) as answers:
        return next(receipt for _, receipt in answers)


def inspect_pairs(requests: Sequence[InspectRequest], source: Source, pool: Pool) -> list[LabelCounts]:
    """Return the counts of all requests, in their order."""
    text = source.to_text()
    jobs = (InspectJob(index, request, text) for index, request in enumerate(requests))
    with closing(pool.run(jobs, pool.workers)) as answers:
        return [counts for _, counts in sorted(answers, key=lambda answer: answer[0])]


def measure_pieces(
    specs: Sequence[ShardSpec], others: Sequence[FieldRule], source: Source, pool: Pool
) -> list[tuple[ShardSpec, tuple[MeasuredRow, ...]]]:
    """Return the sizes of the rows of each spec, with their encodings and by the other rules."""
    text = source.to_text()
    jobs = (MeasureJob(index, spec, others, text) for index, spec in enumerate(specs))
    with closing(pool.run(jobs, pool.workers)) as answers:
        return [(specs[index], sizes) for index, sizes in sorted(answers, key=lambda answer: answer[0])]


def read_heads(
    refs: RefTable, numbers: NDArray[np.intp], source: Source, pool: Pool
) -> Iterator[tuple[NDArray[np.intp], list[AlikeHeads]]]:
    """Yield some of the rows with these numbers, in any order, and the positions among them of rows with the same
    headers."""
    text = source.to_text()
    parts = [numbers[first : first + HEADS_AT_ONCE] for first in range(0, len(numbers), HEADS_AT_ONCE)]
    jobs = (HeadsJob(index, refs, part, text) for index, part in enumerate(parts))
    with closing(pool.run(jobs, pool.workers)) as answers:
        for index, alike in answers:
            yield parts[index], alike
