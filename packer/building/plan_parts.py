"""Build a part of the shards of a plan: on any machine, in any order, any number of times. Nothing is published."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from packer.errors import UsageError, VersionsError
from packer.plan.planned_files import PlannedFiles, stems_of
from packer.progress import Advance, Progress, no_progress
from packer.publish.atomic import store_errors
from packer.publish.free_space import SHARD_SLACK, check_free_space
from packer.publish.local_mirror import READERS, show_shards
from packer.publish.target import make_target, prepare_target, sync_shards
from packer.publish.ticket import Ticket, Tickets
from packer.publish.upload import Outbox
from packer.runtime import Timer
from packer.workers.planned import PlannedShards, open_out
from packer.workers.pool import Pool
from packer.workers.run import open_pool
from readers.contract.receipt import Receipt
from readers.machine import usable_cores

AT_ONCE = 256
"""Shards whose rows, or receipts, are in memory at the same time."""
MOST_PARTS = 1_000_000
_PART = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


@dataclass(frozen=True)
class PlanPart:
    """The shards `number` - 1, `number` - 1 + `count`, … of a plan."""

    number: int
    count: int

    @classmethod
    def from_text(cls, text: str) -> PlanPart:
        """Read a text such as 3/16. Raise ValueError if it is not valid."""
        match = _PART.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= MOST_PARTS:
            raise ValueError(f"expected a part such as 3/16, from 1/16 to 16/16, found {text!r}")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of(cls, shard: int, count: int) -> PlanPart:
        """Return the part that has this shard."""
        return cls(shard % count + 1, count)

    def shards(self, of: int) -> range:
        """Return the numbers of its shards, from the number of all shards."""
        return range(self.number - 1, of, self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True)
class PartSummary:
    """The shards of a part that were built now, and those that were there."""

    part: PlanPart
    shards: int
    built: int
    rows: int
    """The rows of the shards that were built now."""
    rejects: tuple[tuple[str, str, str], ...]
    """Split, key and reason of each rejected pair in them. `packer commit` judges the rejects of all parts."""
    bytes: int
    seconds: float


def build_part(
    plan: str | PathLike[str],
    part: str,
    out: str | PathLike[str],
    *,
    raw: str | PathLike[str] | None = None,
    workers: int | None = None,
    retry_bad: bool = False,
    allow_functions: Collection[str] = (),
    scratch: str | PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> PartSummary:
    """Build the shards of a part such as "3/16" of a plan into `out`, as `packer build-part --plan` does.

    Shards with a ticket are there already. `raw` is the path of the raw files on this machine, if the plan has another
    path. With `retry_bad`, shards with rejects are built again. Functions that give the rows are called only if their
    modules are among `allow_functions`: a plan can name any function. If `out` is a URL, shards on their way
    are in the folder `scratch`, by default that for temporary files.
    Raises VersionsError if this machine has other decoders than the one that planned.
    """
    try:
        plan_part = PlanPart.from_text(part)
    except ValueError as error:
        raise UsageError(f"--part: {error}") from error
    timer, cores = Timer(), workers or usable_cores()
    shards = PlannedShards.open(Path(plan), raw=None if raw is None else Path(raw), modules=allow_functions)
    if shards.refusal is not None:
        raise VersionsError(f"this machine {shards.refusal}; another one could make other bytes")
    numbers = plan_part.shards(len(shards.plan))
    with store_errors(), open_out(fspath(out), None if scratch is None else Path(scratch), cores) as target:
        tickets = Tickets(target.store if isinstance(target, Outbox) else target, shards.plan.sha256)
        files = _prepare(shards, target, tickets, numbers)
        tickets.note_parts(plan_part.count)
        missing = list(_without(files, tickets, numbers, retry_bad))
        if isinstance(target, Outbox):
            target.forget()  # a shard that is built again must have its bytes
        _check_free_space(files, target, missing)
        missing.sort(key=lambda number: -int(shards.plan.row_bytes[number]))  # so that the last ones end together
        total = sum(int(shards.plan.records["pieces"][number]) for number in missing)
        built, opened = _Built(), open_pool(cores, files.task_timeout)
        with timer.step("build"), progress(f"packing {plan_part}", total, "rows") as advance, opened as pool:
            for first in range(0, len(missing), AT_ONCE):
                built.add_all(_build(shards, missing[first : first + AT_ONCE], target, tickets, pool), advance)
            if isinstance(target, Path):
                sync_shards(target)
            tickets.sync()
    seconds = sum(timer.seconds.values())
    return PartSummary(plan_part, len(numbers), len(missing), built.rows, tuple(built.rejects), built.bytes, seconds)


def _prepare(shards: PlannedShards, target: Path | Outbox, tickets: Tickets, numbers: range) -> PlannedFiles:
    """Make the folders of a pack. For a bucket, show those shards of the part here that have tickets."""
    if isinstance(target, Path):
        make_target(target)
        prepare_target(target)
        return PlannedFiles.of(shards.plan, target)
    shard_tickets, _ = tickets.read(len(shards.plan))
    show_shards(target.store, target.folder, stems_of(shards.plan, numbers, shard_tickets))
    return PlannedFiles.of(shards.plan, target.folder)


def _check_free_space(files: PlannedFiles, target: Path | Outbox, missing: Sequence[int]) -> None:
    """Raise TargetError if the disk has too little free space for shards that are to be built."""
    sizes = [int(files.folder.row_bytes[number]) + SHARD_SLACK for number in missing]
    if isinstance(target, Outbox):
        target.check_scratch(max(sizes, default=0))
    else:
        check_free_space(target, sum(sizes))


class _Built:
    """The numbers of the shards that were built."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self.rejects: list[tuple[str, str, str]] = []

    def add_all(self, receipts: Iterator[Receipt], advance: Advance) -> None:
        for receipt in receipts:
            self.rows += receipt.rows
            self.bytes += receipt.bytes
            self.rejects += [(receipt.split, reject.key, reject.reason) for reject in receipt.rejects]
            advance(len(receipt.sources))


def _build(
    shards: PlannedShards, numbers: list[int], out: Path | Outbox, tickets: Tickets, pool: Pool
) -> Iterator[Receipt]:
    """Build shards, and write the ticket of each when it is in OUT."""
    with closing(shards.build_all(numbers, out, pool)) as answers:
        for number, receipt in answers:
            tickets.write(Ticket(number, receipt.fingerprint, receipt.digest))
            yield receipt


def _without(files: PlannedFiles, tickets: Tickets, numbers: range, retry_bad: bool) -> Iterator[int]:
    """Yield the shards that are not there. With `retry_bad`, forget those that have rejects."""
    shard_tickets, _ = tickets.read(len(files.folder))
    for number, receipt in receipts_of(files, numbers, shard_tickets):
        if receipt is None:
            yield number
        elif retry_bad and receipt.rejects:
            tickets.remove(shard_tickets.get(number, ()))
            yield number


def receipts_of(
    files: PlannedFiles, numbers: Iterable[int], shard_tickets: Mapping[int, Sequence[Ticket]]
) -> Iterator[tuple[int, Receipt | None]]:
    """Yield each of these shards in order, with its receipt, or None if it is not there.

    Threads look at the files: a file server takes a round trip for each, and answers many at a time.
    """
    with ThreadPoolExecutor(READERS) as threads:
        ahead = deque[tuple[int, Future[Receipt | None]]]()
        for number in numbers:
            ahead.append((number, threads.submit(receipt_of, files, number, shard_tickets.get(number, ()))))
            if len(ahead) > AT_ONCE:
                shard, receipt = ahead.popleft()
                yield shard, receipt.result()
        for shard, receipt in ahead:
            yield shard, receipt.result()


def receipt_of(files: PlannedFiles, number: int, tickets: Sequence[Ticket]) -> Receipt | None:
    """Return the receipt of a shard that was built, or that existed when the build was planned; None without either."""
    for ticket in tickets:
        receipt = files.receipt(number, ticket.fingerprint)
        if receipt is not None and receipt.digest == ticket.receipt:
            return receipt
    old = files.folder.fingerprint(number)
    return None if old is None or tickets else files.receipt(number, old)
