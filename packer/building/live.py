"""Build a pack that is read at the same time: what its readers need next is built first, and readers hear of it.

readers/contract/live.py describes the files. The bytes of the pack do not depend on the order: it is the same pack.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from packer.building.run_build import build_from, built_here
from packer.building.summary import Summary
from packer.errors import PackError, TargetError, UsageError
from packer.plan.plan import Plan
from packer.plan.request import request_of
from packer.publish.atomic import write_atomic
from packer.publish.generation import put_table
from packer.publish.history import kept_numbers
from packer.publish.next_manifest import next_manifest
from packer.workers.pool import Pool
from readers.contract.atomic import make_folder
from readers.contract.errors import ReadError
from readers.contract.live import ASKED, BUILDER, BUILT, PUBLISHED, READERS, WANTED, LiveShard, note_built, read_wanted
from readers.contract.manifest import GENERATIONS, LIVE, MANIFEST, Manifest
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts, ReceiptFacts
from readers.contract.statistics import no_rows
from readers.contract.system import lock_file
from readers.stores.folder_store import FolderStore
from readers.stores.locks import is_locked

LONELY = 60.0
"""Seconds that a builder waits for its first reader."""


class NoReaderError(PackError):
    """All programs that read the pack have ended. The shards that are whole stay, and the next start goes on."""


class LiveView:
    """OUT/live as its builder sees it."""

    def __init__(self, folder: Path, built: int) -> None:
        self._folder, self._built = folder, built
        self._started, self._was_read = time.monotonic(), False

    def urgent(self) -> Iterator[int]:
        """Yield the shards that readers need, the most urgent first."""
        return read_wanted(self._folder / WANTED)

    def note(self, number: int, shard: Receipt | ReceiptFacts) -> None:
        """Tell readers that the files of a shard are there."""
        note_built(self._built, number, LiveShard(shard.fingerprint, shard.digest, shard.rows))

    def check_readers(self) -> None:
        """Raise NoReaderError if all readers have ended."""
        is_read = is_locked(self._folder / READERS, counts_shared=True)
        self._was_read |= is_read
        if not is_read and (self._was_read or time.monotonic() > self._started + LONELY):
            raise NoReaderError("no program reads the pack any more; what is built so far stays")


@contextmanager
def live_view(plan: Plan, asked: str) -> Iterator[LiveView]:
    """Show readers the plan, what was asked for, and the shards that are there. OUT must be locked."""
    folder = plan.out / LIVE
    for name in (GENERATIONS, WANTED):
        make_folder(folder / name)
    manifest, table = _planned(plan)
    shown = _shown(folder)
    if shown is None or shown.generation != manifest.generation or not shown.same_data(manifest):
        _check_unread(folder, shown, plan.current)
        (folder / BUILT).unlink(missing_ok=True)  # readers of the same plan go on with the same file
        put_table(FolderStore(folder), manifest.table, table)
        write_atomic(folder / MANIFEST, manifest.to_text())
    for left in (folder / WANTED).iterdir():
        left.unlink(missing_ok=True)
    write_atomic(folder / ASKED, asked)
    (folder / READERS).touch()
    built, lock = (os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for name in (BUILT, BUILDER))
    view = LiveView(folder, built)
    try:
        for number, facts in plan.reused.items():
            view.note(number, facts)
        os.ftruncate(lock, 0)
        lock_file(lock)  # from here on readers trust the manifest; each looks at the lock for an instant
        yield view
    finally:
        os.close(built)
        os.close(lock)


def live_shards(plan: Plan, pool: Pool, asked: str) -> Generator[tuple[int, Receipt], None, None]:
    """Build the shards of a plan on this machine, the wanted ones first, and tell readers of each. Stop without any."""
    if not plan.new_specs:
        _note_reused(plan)
        return  # readers open the published pack
    left = len(plan.new_specs)
    with live_view(plan, asked) as view, closing(built_here(plan, pool, urgent=view.urgent)) as shards:
        for number, receipt in shards:
            view.note(number, receipt)
            left -= 1
            yield number, receipt
            if left:
                view.check_readers()


def _note_reused(plan: Plan) -> None:
    """Tell readers of all shards. They may wait for one whose builder was killed before it told them."""
    folder = plan.out / LIVE
    shown = _shown(folder) if is_locked(folder / READERS, counts_shared=True) else None
    if shown is None or not shown.same_data(_planned(plan)[0]):
        return
    built = os.open(folder / BUILT, os.O_RDWR | os.O_CLOEXEC)
    try:
        for number, facts in plan.reused.items():
            LiveView(folder, built).note(number, facts)
    finally:
        os.close(built)


def _planned(plan: Plan) -> tuple[Manifest, bytes]:
    """Return the manifest and the shard table of the pack if no further row is bad."""
    number = max(kept_numbers(plan.out), default=0) + 1
    return next_manifest(number, plan.recipe, _as_planned(plan))


def _as_planned(plan: Plan) -> AllReceipts:
    """Return facts of all shards in which no further row is bad."""
    receipts = AllReceipts()
    for number, spec in enumerate(plan.specs):
        names = tuple(field.name for field in spec.fields)
        rows, size = plan.good_pieces(spec), int(plan.recipe.row_bytes(spec.pieces).sum())
        receipts.put(number, ReceiptFacts.planned(spec.split, names, rows, size), no_rows(spec.fields))
    return receipts


def _shown(folder: Path) -> Manifest | None:
    """Return the plan that readers see."""
    try:
        return Manifest.load(folder)
    except (ReadError, OSError):
        return None


def _check_unread(folder: Path, shown: Manifest | None, current: Manifest | None) -> None:
    """Raise TargetError if programs read a plan that was not built to its end, and would now be replaced."""
    is_published = shown is None or (current is not None and current.generation >= shown.generation)
    if not is_published and is_locked(folder / READERS, counts_shared=True):
        raise TargetError(
            f"{folder.parent}: a program reads it that was started with other options, or before the raw files "
            "changed; end it first, or name another folder"
        )


def build_for_readers(asked: str, out: Path) -> Summary | None:
    """Build as long as a program reads the pack; None if all have ended before. Tell readers that asked for the same of
    an error. OUT must be locked.

    `asked` names RAW and the options as JSON."""
    wish = json.loads(asked)
    try:
        request = request_of(wish["raw"], out, **wish["options"])
    except TypeError as error:  # an option that is not known, or of another type
        raise UsageError(str(error)) from None
    try:
        summary = build_from(request, builder=partial(live_shards, asked=asked))
    except NoReaderError:
        return None
    except PackError as error:
        _tell(out / LIVE, asked, str(error))
        raise
    _tell(out / LIVE, asked, PUBLISHED)
    return summary


def _tell(folder: Path, asked: str, why: str) -> None:
    """Tell readers that asked for the same why the builder ends."""
    if (folder / ASKED).is_file() and (folder / ASKED).read_text() == asked:
        write_atomic(folder / BUILDER, why)
