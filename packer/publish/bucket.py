"""A pack in a bucket, and its shadow on this machine, which workers write to as if it were the pack.

A plan finds in the shadow what may be reused. A new shard is sent when it is written, and then takes no disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.publish.atomic import store_errors
from packer.publish.generation import Current, read_current
from packer.publish.local_mirror import (
    STAMP,
    ChosenNames,
    Entries,
    copy_objects,
    make_shadow,
    mark,
    objects_of_pack,
    private_scratch,
    receipts_of,
    stems_with_stamps,
)
from packer.publish.lock_object import exclusive
from packer.publish.pin import check_pin
from packer.publish.target import STAMPS
from packer.publish.upload import Outbox, names_of
from readers.contract.cells import names_of_cells
from readers.contract.receipt import Receipt
from readers.stores.open_store import open_store
from readers.stores.store import Store


class Bucket(Outbox):
    """The store of a pack, its shadow, and what was current when the build began."""

    def __init__(self, store: Store, folder: Path, before: Current, slots: int) -> None:
        super().__init__(store, folder, slots)
        self.before = before
        self._copied: dict[Path, int] = {}
        """The times of files that were copied. One that still has its time was not written here."""

    def copy(self, entries: Entries, names: Iterable[str]) -> None:
        """Copy small objects to the shadow."""
        copy_objects(self.store, self.folder, entries, names, self._note)

    def send(self, receipt: Receipt) -> None:
        """Send a shard that was written, its receipt after its files. Then its files take no disk here."""
        *files, last = names_of(receipt)
        if self._is_new(self.folder / last):  # else it came out the same, and its files are empty here
            for name in (*names_of_cells(self.folder, receipt.stem), *files, last):
                self.put(name)
            for name, file in zip(files, receipt.files, strict=True):
                os.truncate(self.folder / name, 0)
                os.truncate(self.folder / name, file.bytes)
        self._send_stamps(self.folder / STAMPS / f"{receipt.stem}{STAMP}")

    def finish(self) -> None:
        """Send stamps that were renewed while the build was planned."""
        for path in sorted((self.folder / STAMPS).glob(f"*{STAMP}")):
            self._send_stamps(path)

    def _send_stamps(self, path: Path) -> None:
        if path.exists() and self._is_new(path):
            self.put(f"{STAMPS}/{path.name}")
            self._note(path)

    def _note(self, path: Path) -> None:
        self._copied[path] = path.stat().st_mtime_ns

    def _is_new(self, path: Path) -> bool:
        return path.stat().st_mtime_ns != self._copied.get(path)


def with_stamps(entries: Entries) -> list[str]:
    """Return the names of the objects that a plan needs, to find what may be reused."""
    stems = stems_with_stamps(entries)
    return [*receipts_of(stems), *(f"{STAMPS}/{stem}{STAMP}" for stem in stems)]


@contextmanager
def open_bucket(
    url: str,
    scratch: Path | None,
    slots: int,
    may_lock: bool,
    choose: ChosenNames = with_stamps,
) -> Iterator[Bucket]:
    """Open the bucket of a pack, after a probe of its conditions, with a shadow below `scratch` or TMPDIR.

    `choose` names the small objects that the shadow gets besides manifest and table.
    """
    with store_errors(), exclusive(open_store(url), may_lock) as store:
        before, entries = read_current(store), objects_of_pack(store)
        names = choose(entries)
        mark(store, entries)
        check_pin(store)
        with private_scratch(scratch) as folder:
            make_shadow(store, folder, before, entries)
            bucket = Bucket(store, folder, before, slots)
            try:
                bucket.copy(entries, names)
                yield bucket
            finally:
                bucket.close()
