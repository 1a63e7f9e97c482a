"""Commit a plan: check that every shard is there, judge them as a build does, and publish."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from packer.build.judge import find, judge
from packer.build.remarks import keep_remarks_of
from packer.build.share import Part, receipt_of
from packer.build.summary import Summary
from packer.config.last_build import keep_settings
from packer.errors import PartsError, TargetError, first_of
from packer.plan.expected import PlannedFiles
from packer.progress import Advance, Progress, no_progress
from packer.publish.generation import commit, known_digests
from packer.publish.lock import locked
from packer.publish.pin import check_pin
from packer.publish.target import check_target, is_ours, tidy
from packer.publish.ticket import Ticket, Tickets
from packer.runtime import Timer
from readers.contract.errors import DamagedError
from readers.contract.receipt_facts import AllReceipts
from readers.contract.tiles import picture_of

MOST_NAMED = 20


def commit_pack(plan: str | PathLike[str], out: str | PathLike[str], *, progress: Progress = no_progress) -> Summary:
    """Publish the shards of a plan that were built into `out`, as `packer commit` does.

    Raises PartsError if shards are missing, or were built twice with other results; then nothing is published. If the
    same data is published already, nothing changes.
    """
    out, timer = Path(out), Timer()
    files = PlannedFiles.open(Path(plan), out)
    _check(out)
    with locked(out):
        check_pin(out)
        tidy(out)
        with timer.step("read"), progress("checking", len(files.folder), "shards") as advance:
            receipts, reused = _read(files, out, advance)
        rows, rejects = judge(files.expected, receipts)
        with timer.step("look back"):
            findings = find(files.expected, receipts)
            findings.check(files.expected.request.fail_on)
        with timer.step("publish"):
            manifest = commit(out, files.expected.recipe, receipts)
        facts = files.folder.facts
        summary = Summary(
            manifest,
            facts.rows,
            facts.pieces,
            rows,
            reused,
            facts.missing,
            rejects,
            receipts.notes,
            findings,
            timer.seconds,
        )
        keep_remarks_of(out, summary)
        keep_settings(out, {**files.settings, "out": str(out)})
    return summary


def missing_parts(plan: str | PathLike[str], out: str | PathLike[str]) -> list[Part]:
    """Return the parts of a plan that must run again, because shards of theirs are not in `out`."""
    out = Path(out)
    files = PlannedFiles.open(Path(plan), out)
    _check(out)
    found, parts = Tickets(out, files.folder.sha256).read(len(files.folder))
    missing = (
        number for number in range(len(files.folder)) if receipt_of(files, number, found.get(number, [])) is None
    )
    return sorted({Part.of(number, max(1, parts)) for number in missing}, key=lambda part: part.number)


def _check(out: Path) -> None:
    check_target(out)
    if not is_ours(out):
        raise TargetError(f"{out}: no part of a plan was built there; packer build --plan PLAN --part 1/4 {out}")


def _read(files: PlannedFiles, out: Path, advance: Advance) -> tuple[AllReceipts, int]:
    """Return the facts of all receipts, and the rows of those that existed before. Raise one error for all missing."""
    found, parts = Tickets(out, files.folder.sha256).read(len(files.folder))
    _check_equal(files, found)
    receipts = AllReceipts(known_digests(out), picture_of if files.expected.cuts_tiles else str)
    missing, seen = list[int](), set[str]()
    reused = 0
    for number in range(len(files.folder)):
        receipt = receipt_of(files, number, found.get(number, []))
        if receipt is None:
            missing.append(number)
            continue
        files.check(number, receipt)
        if receipt.fingerprint in seen:
            raise DamagedError(f"{out}: a ticket of shard {number} names {receipt.stem}, which is another shard")
        seen.add(receipt.fingerprint)
        receipts.add(number, receipt)
        reused += receipt.rows if number not in found else 0
        advance(1)
    if missing:
        raise PartsError(_missing_words(files, missing, parts))
    return receipts, reused


def _check_equal(files: PlannedFiles, found: dict[int, list[Ticket]]) -> None:
    """Refuse shards of which two results are there: raw files changed in between, or a machine decodes otherwise."""
    twice = [(number, tickets) for number, tickets in sorted(found.items()) if len(tickets) > 1]
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
    wanted = sorted({Part.of(number, max(1, parts)) for number in missing}, key=lambda part: part.number)
    names = ", ".join(first_of(wanted, MOST_NAMED))
    advice = f"run the parts again: {names}" if parts else "no part of this plan has run"
    return f"{len(missing)} of {len(files.folder)} shards are missing, so nothing was published; {advice}"
