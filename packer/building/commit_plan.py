"""Commit a plan: check that every shard is there, judge them as a build does, and publish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path

from packer.building.finish import finish, keep_facts
from packer.building.plan_parts import PlanPart, receipts_of
from packer.building.summary import Summary
from packer.config.options import LOCK, REFUSE
from packer.errors import PartsError, TargetError, first_of, some_are
from packer.plan.planned_files import PlannedFiles, receipts_in
from packer.progress import Advance, Progress, no_progress
from packer.publish.atomic import store_errors
from packer.publish.bucket import Bucket, open_bucket
from packer.publish.generation import known_digests
from packer.publish.local_mirror import ChosenNames, Entries, open_shadow
from packer.publish.lock import locked
from packer.publish.pin import check_pin
from packer.publish.target import check_target, is_ours, tidy
from packer.publish.ticket import Ticket, Tickets
from packer.recipe.plan_folder import PlanFolder
from packer.runtime import Timer
from readers.contract.errors import DamagedError
from readers.contract.manifest import MARK
from readers.contract.receipt_facts import AllReceipts
from readers.contract.tiles import picture_of
from readers.stores.open_store import open_store, url_of
from readers.stores.store import Store

MOST_NAMED = 20


def commit_pack(
    plan: str | PathLike[str],
    out: str | PathLike[str],
    *,
    scratch: str | PathLike[str] | None = None,
    no_conditions: str = REFUSE,
    progress: Progress = no_progress,
) -> Summary:
    """Publish the shards of a plan that were built into `out`, as `packer commit` does.

    If `out` is a URL, the receipts of all shards are copied below `scratch`, and `no_conditions` may be "lock" for a
    store without conditional writes. Raises PartsError if shards are missing, or were built twice with other results;
    then nothing is published. If the same data is published already, nothing changes.
    """
    timer, folder = Timer(), PlanFolder.open(Path(plan))
    with store_errors(), _changing(out, partial(receipts_in, folder), scratch, no_conditions) as (root, bucket):
        files = PlannedFiles.of(folder, root)
        tickets = Tickets(root if bucket is None else bucket.store, folder.sha256)
        with timer.step("read"), progress("checking", len(folder), "shards") as advance:
            receipts, reused = _read(files, root, tickets, advance)
        summary = finish(files.expected, receipts, reused, root, bucket, timer)
        keep_facts(summary, {**files.settings, "out": url_of(out) or str(out)}, root, bucket)
    return summary


def missing_parts(
    plan: str | PathLike[str], out: str | PathLike[str], scratch: str | PathLike[str] | None = None
) -> list[PlanPart]:
    """Return the parts of a plan that must run again, because shards of theirs are not in `out`."""
    folder = PlanFolder.open(Path(plan))
    with store_errors(), _looking(out, partial(receipts_in, folder), scratch) as (root, store):
        files = PlannedFiles.of(folder, root)
        shard_tickets, parts = Tickets(store, folder.sha256).read(len(folder))
        receipts = receipts_of(files, range(len(folder)), shard_tickets)
        missing = [number for number, receipt in receipts if receipt is None]
    return sorted({PlanPart.of(number, max(1, parts)) for number in missing}, key=lambda part: part.number)


@contextmanager
def _changing(
    out: str | PathLike[str], choose: ChosenNames, scratch: str | PathLike[str] | None, no_conditions: str
) -> Iterator[tuple[Path, Bucket | None]]:
    """Yield OUT, locked; of a bucket, its shadow and the bucket."""
    url, root = url_of(out), Path(out)
    if url is None:
        _check(root)
        with locked(root):
            check_pin(root)
            tidy(root)
            yield root, None
    else:
        with open_bucket(url, _path(scratch), 1, no_conditions == LOCK, _in_bucket_of_a_part(out, choose)) as bucket:
            yield bucket.folder, bucket


@contextmanager
def _looking(
    out: str | PathLike[str], choose: ChosenNames, scratch: str | PathLike[str] | None
) -> Iterator[tuple[Path, Path | Store]]:
    """Yield OUT twice; of a bucket, a shadow and the store. Nothing is written there."""
    url, root = url_of(out), Path(out)
    if url is None:
        _check(root)
        yield root, root
    else:
        store = open_store(url)
        with open_shadow(store, _path(scratch), _in_bucket_of_a_part(out, choose)) as shadow:
            yield shadow, store


def _in_bucket_of_a_part(out: str | PathLike[str], choose: ChosenNames) -> ChosenNames:
    def names(entries: Entries) -> Iterable[str]:
        if MARK not in entries:
            raise _no_part(str(url_of(out)))
        return choose(entries)

    return names


def _path(scratch: str | PathLike[str] | None) -> Path | None:
    return None if scratch is None else Path(scratch)


def _check(out: Path) -> None:
    check_target(out)
    if not is_ours(out):
        raise _no_part(str(out))


def _no_part(out: str) -> TargetError:
    return TargetError(f"{out}: no part of a plan was built there; packer build-part --plan PLAN --part 1/4 {out}")


def _read(files: PlannedFiles, out: Path, tickets: Tickets, advance: Advance) -> tuple[AllReceipts, int]:
    """Return the facts of all receipts, and the rows of those that existed before. Raise one error for all missing."""
    shard_tickets, parts = tickets.read(len(files.folder))
    _check_equal(files, shard_tickets)
    receipts = AllReceipts(_digests(out, shard_tickets), picture_of if files.expected.cuts_tiles else str)
    missing, seen = list[int](), set[str]()
    reused = 0
    for number, receipt in receipts_of(files, range(len(files.folder)), shard_tickets):
        if receipt is None:
            missing.append(number)
            continue
        files.check(number, receipt)
        if receipt.fingerprint in seen:
            raise DamagedError(f"a ticket of shard {number} names {receipt.stem}, which is another shard")
        seen.add(receipt.fingerprint)
        receipts.add(number, receipt)
        reused += receipt.rows if number not in shard_tickets else 0
        advance(1)
    if missing:
        raise PartsError(_missing_words(files, missing, parts))
    return receipts, reused


def _digests(out: Path, shard_tickets: dict[int, list[Ticket]]) -> dict[str, str]:
    """Return the SHA-256 of receipts by fingerprint: of those that were published, and of those with a ticket, which
    `receipts_of` compares."""
    tickets = {ticket.fingerprint: ticket.receipt for tickets in shard_tickets.values() for ticket in tickets}
    return {**known_digests(out), **tickets}


def _check_equal(files: PlannedFiles, shard_tickets: dict[int, list[Ticket]]) -> None:
    """Refuse shards that have two results: raw files changed in between, or a machine decodes otherwise."""
    twice = [(number, tickets) for number, tickets in sorted(shard_tickets.items()) if len(tickets) > 1]
    words = [_words(files, number, tickets) for number, tickets in twice]
    if words:
        raise PartsError(
            "\n".join(
                [
                    "shards were built twice with other results, so raw files changed in between, or a machine decodes "
                    "otherwise; nothing was published. Delete the tickets of the wrong results, or all of a shard, and "
                    "run its part again:",
                    *first_of(words, MOST_NAMED),
                ]
            )
        )


def _words(files: PlannedFiles, number: int, tickets: Sequence[Ticket]) -> str:
    """Name a shard and its results."""
    pieces, split = files.folder.spec(number).pieces, files.folder.split(number)
    names = " and ".join(ticket.name for ticket in tickets)
    return f"  shard {number}, {split}/{pieces[0].key} to {pieces[-1].key}: {names}"


def _missing_words(files: PlannedFiles, missing: Sequence[int], parts: int) -> str:
    parts_to_run = sorted({PlanPart.of(number, max(1, parts)) for number in missing}, key=lambda part: part.number)
    names = ", ".join(first_of(parts_to_run, MOST_NAMED))
    advice = f"run the parts again: {names}" if parts else "no part of this plan has run"
    return f"{some_are(len(missing), len(files.folder), 'shard')} missing, so nothing was published; {advice}"
