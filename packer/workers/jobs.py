"""Jobs: a shard to build or a pair to inspect, tried again when a worker crashes at it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from packer.errors import EngineError, TargetError
from packer.recipe.field_rule import FieldRule
from packer.recipe.ref_table import RefTable
from packer.recipe.shard_spec import ShardSpec
from packer.shards.alike_heads import AlikeHeads
from packer.shards.inspect import InspectRequest, LabelCounts
from packer.shards.measure import MeasuredRow
from packer.workers.messages import (
    HeadsTask,
    InspectTask,
    MeasureTask,
    ShardTask,
    read_counts,
    read_fingerprint,
    read_heads,
    read_sizes,
)
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, shard_stem

MOST_FAILURES = 3
"""The number of crashes at a job that are tolerated if no pair is to blame."""
MOST_CRASHES = 2
"""A pair is rejected after this many crashes with no other pair in work. One may be a random kill."""

Answer_co = TypeVar("Answer_co", covariant=True)


class Job(Protocol[Answer_co]):
    """The interface that pools need."""

    @property
    def index(self) -> int:
        """Its index among the jobs of one run."""

    @property
    def source(self) -> str:
        """The text of the source that its tasks read."""

    @property
    def out(self) -> Path | None:
        """The pack that the job writes to, if any."""

    def task(self) -> str:
        """Return the next task for a worker, as JSON."""

    def read(self, text: str) -> Answer_co | None:
        """Read a worker's answer; None if there is more to do. Raises the error that the answer reports."""

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        """Record that a worker crashed with these pairs in work. Raises EngineError if trying again would not help."""


class InspectJob:
    """One request. If two workers crash at its pair, the answer is a bad pair."""

    out = None

    def __init__(self, index: int, request: InspectRequest, source: str) -> None:
        self.index, self.source = index, source
        self._request = request
        self._crashes = self._failures = 0
        self._cause: str | None = None

    def task(self) -> str:
        return InspectTask(self._request, self._cause).to_text()

    def read(self, text: str) -> LabelCounts:
        return read_counts(text)

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        self._failures += 1
        self._crashes += bool(indices)
        if self._crashes >= MOST_CRASHES:
            self._cause = f"{' or '.join(filter(None, self._request.ref.parts))}: {cause}"
        if self._failures > MOST_FAILURES:
            raise EngineError(f"a worker process crashed {self._failures} times at {self._request.ref.parts[-1]}")


class ShardJob:
    """One shard: which task comes next, and which pairs crash workers.

    After a crash all pairs are decoded in one thread; behind each pair at which a worker crashes, decoding continues.
    Each of these pairs is then tried alone. So a hostile pair costs a worker or two, but not the work of the shard each
    time, and the reason is found in the same way for any number of threads.
    """

    def __init__(self, index: int, spec: ShardSpec, source: str, out: Path, rewrite: bool = False) -> None:
        self.index, self.source, self.out = index, source, out
        self._spec, self._rewrite = spec, rewrite
        self._rejected: dict[int, str] = {}
        self._to_decode: list[int] = []
        """Pieces that are decoded one after the other, to find those that crash a worker."""
        self._to_try: list[int] = []
        """Pieces that are tried alone."""
        self._crashes: Counter[int] = Counter()
        self._failures = 0

    def task(self) -> str:
        return self.next_task().to_text()

    def next_task(self) -> ShardTask:
        """Return the task that comes next."""
        indices = tuple(self._to_decode or (self._picture_of(self._to_try[0]) if self._to_try else ())) or None
        crashed = {} if indices else dict(sorted(self._rejected.items()))
        return ShardTask(self._spec, str(self.out), crashed, indices, self._rewrite)

    def read(self, text: str) -> Receipt | None:
        fingerprint = read_fingerprint(text)
        if fingerprint is None:
            self.passed()
            return None
        path = self.out / SHARDS / (shard_stem(self._spec.split, fingerprint) + SUFFIX)
        try:
            return Receipt.load(path)
        except DamagedError as error:
            raise TargetError(f"{error}, although a worker has just written it") from error

    def passed(self) -> None:
        """Record that the worker did not crash."""
        if self._to_decode:
            self._to_decode = []
        else:
            self._to_try = self._to_try[1:]

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        task = self.next_task()
        possible = range(len(self._spec.pieces)) if task.indices is None else task.indices
        indices = [index for index in indices if index in possible]  # a crashing worker may have written anything
        if task.indices is None or len(indices) != 1:
            self._fail()
        if len(indices) == 1:
            self._suspect(indices[0], cause)
        if task.indices is None and indices:
            suspected = {other for index in self._to_try for other in self._picture_of(index)}
            self._to_decode = [index for index in possible if index not in suspected and index not in self._rejected]
        elif self._to_decode and len(indices) == 1:
            last = max(self._picture_of(indices[0]))
            self._to_decode = [index for index in self._to_decode if index > last]

    def _suspect(self, index: int, cause: str) -> None:
        """Record that a worker crashed with only this pair in work."""
        self._crashes[index] += 1
        if self._crashes[index] < MOST_CRASHES:
            self._to_try.append(index)
            return
        parts = " or ".join(self._spec.pieces[index].ref.parts)
        for other in self._picture_of(index):
            self._rejected[other] = f"{parts}: {cause}"
        self._to_try = [other for other in self._to_try if other != index]
        self._failures = 0

    def _picture_of(self, index: int) -> list[int]:
        """Return the indices of all pieces that are cut from the same picture as this one."""
        ref = self._spec.pieces[index].ref
        return [other for other, piece in enumerate(self._spec.pieces) if piece.ref == ref]

    def _fail(self) -> None:
        self._failures += 1
        if self._failures > MOST_FAILURES:
            first, last = self._spec.pieces[0].key, self._spec.pieces[-1].key
            raise EngineError(
                f"a worker process crashed {self._failures} times at the shard of {self._spec.split}/{first} to {last}"
                ", and no pair is to blame; perhaps memory ran out: try fewer --workers or a smaller --shard-size"
            )


class MeasureJob:
    """Rows to measure. A piece at which a worker crashes is left out: the rows are a sample."""

    out = None

    def __init__(self, index: int, spec: ShardSpec, others: Sequence[FieldRule], source: str) -> None:
        self.index, self.source = index, source
        self._spec, self._others = spec, tuple(others)
        self._crashed: tuple[MeasuredRow, ...] = ()

    def task(self) -> str:
        return MeasureTask(self._spec, self._others).to_text()

    def read(self, text: str) -> tuple[MeasuredRow, ...]:
        return read_sizes(text) + self._crashed

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        out = indices or range(len(self._spec.pieces))
        kept = [piece for index, piece in enumerate(self._spec.pieces) if index not in out]
        names = (" or ".join(filter(None, self._spec.pieces[index].ref.parts)) for index in out)
        self._crashed += tuple(MeasuredRow(bad=f"{name}: {cause}") for name in names)
        self._spec = replace(self._spec, pieces=kept)


class HeadsJob:
    """Rows whose headers are read. They become objects when a worker takes the job: there may be very many."""

    out = None

    def __init__(self, index: int, refs: RefTable, numbers: NDArray[np.intp], source: str) -> None:
        self.index, self.source = index, source
        self._refs, self._numbers = refs, numbers
        self._failures = 0

    def task(self) -> str:
        return HeadsTask(tuple(self._refs.take(self._numbers))).to_text()

    def read(self, text: str) -> list[AlikeHeads]:
        return read_heads(text, len(self._numbers))

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        self._failures += 1
        if self._failures > MOST_FAILURES:
            first, last = (self._refs[int(self._numbers[end])].parts[0] for end in (0, -1))
            raise EngineError(
                f"a worker process crashed {self._failures} times at the headers of {first} to {last}; perhaps memory "
                "ran out: try fewer --workers"
            )


class OneTry(ShardJob):
    """A shard that a caller waits for: a crash ends it, without another try."""

    def crashed(self, indices: Sequence[int], cause: str) -> None:
        parts = " or ".join(filter(None, self._spec.pieces[indices[0] if indices else 0].ref.parts))
        raise EngineError(f"{parts}: {cause}")


Urgent = Callable[[], Iterable[int]]
"""Returns the indices of jobs that others wait for, the most urgent first."""


def nothing_urgent() -> Iterable[int]:
    """Return nothing: jobs are taken in their order."""
    return ()


class WaitingJobs:
    """Jobs in their order. What is wanted comes first, and before it what a worker did not finish."""

    def __init__(self, jobs: Iterable[Job[Any]], urgent: Urgent = nothing_urgent) -> None:
        self._jobs = {job.index: job for job in jobs}
        self._again = deque[Job[Any]]()
        self._urgent = urgent

    def __len__(self) -> int:
        return len(self._again) + len(self._jobs)

    def take(self) -> Job[Any]:
        """Return the next job."""
        if self._again:
            return self._again.popleft()
        first = next(filter(self._jobs.__contains__, self._urgent()), None)
        return self._jobs.pop(next(iter(self._jobs)) if first is None else first)

    def put_back(self, job: Job[Any]) -> None:
        """Take back a job that has more to do."""
        self._again.appendleft(job)

    def clear(self) -> None:
        """Forget all jobs."""
        self._jobs.clear()
        self._again.clear()
