"""Shards on their way into a store: workers write them to a folder of this machine, and threads send them.

A shard has its name from what it was made of, so another one of the same name has the same bytes, whichever machine
sends it and however often. It is created, never replaced: a shard that is published stays unchanged.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from packer.errors import TargetError
from packer.publish.atomic import store_errors
from packer.publish.conditional_writes import created
from packer.publish.free_space import check_free_space
from packer.publish.local_mirror import STAMP, mark, objects_of_pack, private_scratch
from packer.publish.target import STAMPS
from readers.contract.cells import names_of_cells
from readers.contract.errors import StoreBusyError, StoreError
from readers.contract.manifest import MARK, SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.stores.object_store import ONE_PUT
from readers.stores.open_store import open_store
from readers.stores.store import Store
from readers.stores.waiting import answered

AHEAD = 4
"""The shards for each core that scratch must have room for: one is written, another sent, and sizes vary."""


class Outbox:
    """A store, and the folder whose new shards are sent there."""

    def __init__(self, store: Store, folder: Path, slots: int) -> None:
        """`slots` shards are sent at the same time."""
        self.store, self.folder = store, folder
        self._slots = slots
        self._threads = ThreadPoolExecutor(slots, "send")

    def check_scratch(self, largest: int) -> None:
        """Raise TargetError if the disk has too little free space for shards of up to `largest` bytes."""
        need = f"for {AHEAD} shards for each of {self._slots} cores"
        advice = f" {need}; name another folder with --scratch, or use a smaller --shard-size or fewer --workers"
        check_free_space(self.folder, AHEAD * self._slots * largest, advice, self.folder.parent.parent)

    def sent(self, shards: Iterable[tuple[int, Receipt]]) -> Generator[tuple[int, Receipt], None, None]:
        """Send shards that were written, and yield each when it is in the store. At most `slots` are on their way."""
        sending: deque[tuple[int, Receipt, Future[None]]] = deque()
        for number, receipt in shards:
            sending.append((number, receipt, self._threads.submit(self.send, receipt)))
            while len(sending) > self._slots or (sending and sending[0][2].done()):
                yield _finished(*sending.popleft())
        while sending:
            yield _finished(*sending.popleft())

    def forget(self) -> None:
        """Remove the files of shards from the folder."""
        for path in (self.folder / SHARDS).iterdir():
            path.unlink()

    def send(self, receipt: Receipt) -> None:
        """Send a shard: its cells, its files, its receipt, its stamps. Then it takes no disk here."""
        names, cells = names_of(receipt), names_of_cells(self.folder, receipt.stem)
        for name in cells:
            self.put(name)
        for name in names:
            self._create(name)
        stamps = f"{STAMPS}/{receipt.stem}{STAMP}"
        if (self.folder / stamps).exists():
            self.put(stamps)
        for path in (*map(self.folder.joinpath, [*names, *cells]), *(self.folder / STAMPS).glob(f"{receipt.stem}.*")):
            path.unlink(missing_ok=True)

    def put(self, name: str) -> None:
        """Send a file of the folder, and replace the object that is there."""
        data = _mapped(self.folder / name)
        answered(lambda: self.store.put(name, data))

    def _create(self, name: str) -> None:
        """Send a file of the folder. An object that is there must have its bytes."""
        if (self.folder / name).stat().st_size > ONE_PUT:
            self.put(name)  # parts of a large object cannot be sent under a condition
            return
        try:
            is_ours = created(self.store, name, _mapped(self.folder / name))
        except StoreBusyError:
            raise
        except StoreError:  # it knows no conditions; whatever else is wrong, the next call reports
            self.put(name)
            return
        if not is_ours:
            raise TargetError(
                f"{self.store.url}/{name}: has other bytes than this machine makes from the same raw files: it is "
                "damaged, or one of the machines decodes otherwise. If no generation uses it, delete it and try again"
            )

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


@contextmanager
def open_outbox(url: str, scratch: Path | None, slots: int) -> Iterator[Outbox]:
    """Open an outbox below `scratch` or TMPDIR to the pack at a URL, which is marked as ours. Nothing is locked."""
    with store_errors():
        store = open_store(url)
        try:
            answered(lambda: store.read(MARK))
        except FileNotFoundError:
            mark(store, objects_of_pack(store))
        with private_scratch(scratch) as folder:
            outbox = Outbox(store, folder, slots)
            try:
                yield outbox
            finally:
                outbox.close()


def names_of(receipt: Receipt) -> list[str]:
    """Return the names of the objects of a shard, its receipt last."""
    files = [f"{SHARDS}/{receipt.stem}{file.suffix}" for file in receipt.files]
    return [*files, f"{SHARDS}/{receipt.stem}{SUFFIX}"]


def _finished(number: int, receipt: Receipt, sending: Future[None]) -> tuple[int, Receipt]:
    sending.result()
    return number, receipt


def _mapped(path: Path) -> memoryview:
    """Return the bytes of a file without a copy of them in memory.

    They are never released by hand: after an error the client may have them for a moment longer.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
