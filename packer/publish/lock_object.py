"""A lock for stores without conditional writes: an object that its owner renews.

A builder writes `.locks/<token>`, lists the folder, and gives up if another lock was renewed within LIFETIME. Of two
builders both may give up; never do both go on, if a listing shows what was written. The owner renews its lock every
minute, and looks once more before each write that publishes. It may sleep for LIFETIME right after that look: this is
the risk that conditions do not have.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from packer.errors import BusyError, TargetError
from packer.publish.store_probe import fault_of_conditions
from readers.contract.errors import StoreError
from readers.contract.json_entry import loads
from readers.stores.store import Data, Listed, Store, Version
from readers.stores.waiting import answered

LOCKS = ".locks"
LIFETIME, RENEWAL = 600.0, 60.0
"""Seconds."""


@contextmanager
def exclusive(store: Store, may_lock: bool = False) -> Iterator[Store]:
    """Yield the store to publish in: the same one if it keeps conditions, else one under a lock, if that is allowed."""
    fault = fault_of_conditions(store)
    if fault is None:
        yield store
    elif not may_lock:
        raise TargetError(
            f"{store.url}: this store does not keep conditional writes ({fault}), so builds at the same time could "
            "both publish; name another store, or take a lock that leaves a small risk: --no-conditions lock"
        )
    else:
        with _locked(store) as check:
            yield LockedStore(store, check)


class LockedStore:
    """A store whose conditions are checked by reading: right only while no other process writes."""

    def __init__(self, store: Store, check: Callable[[], None]) -> None:
        self.url, self._store, self._check = store.url, store, check
        self.list, self.read, self.fetch = store.list, store.read, store.fetch

    def put(self, name: str, data: Data) -> None:
        self._store.put(name, data)

    def delete(self, names: Iterable[str]) -> None:
        self._store.delete(names)

    def create(self, name: str, data: Data) -> bool:
        return self._put_if(name, data, None)

    def replace(self, name: str, data: Data, old: Version) -> bool:
        return self._put_if(name, data, old)

    def _put_if(self, name: str, data: Data, old: Version | None) -> bool:
        self._check()
        try:
            version = self._store.read(name)[1]
        except FileNotFoundError:
            version = None
        if (version and version.tag) != (old and old.tag):
            return False
        self._store.put(name, data)
        return True


@contextmanager
def _locked(store: Store) -> Iterator[Callable[[], None]]:
    """Hold the lock of a store, and yield a function that raises BusyError if it was lost."""
    mine, ended = f"{LOCKS}/{secrets.token_hex(8)}", Event()
    renewed, why = [time.monotonic()], [""]
    text = json.dumps({"host": socket.gethostname(), "process": os.getpid()}).encode()

    def renew() -> None:
        while not ended.wait(RENEWAL):
            try:
                store.put(mine, text)
                renewed[0], why[0] = time.monotonic(), ""
            except Exception as error:  # noqa: BLE001 - reported when the lock is needed, and until then tried again
                why[0] = f" ({error})"

    def check() -> None:
        if time.monotonic() - renewed[0] > LIFETIME / 2:
            raise BusyError(f"{store.url}: the lock could not be renewed{why[0]}; try again")
        _check_alone(store, mine)

    thread = Thread(target=renew, daemon=True, name="lock")
    try:
        answered(lambda: store.put(mine, text))
        check()
        thread.start()
        yield check
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()
        with suppress(StoreError):  # it ends by itself, and the build may have published
            answered(lambda: store.delete([mine]))


def _check_alone(store: Store, mine: str) -> None:
    """Raise BusyError if there is another living lock, or ours is gone. The clock is the store's."""
    locks = {entry.name: entry for entry in store.list(LOCKS)}
    if mine not in locks:
        raise BusyError(f"{store.url}: the lock of this build is gone; try again")
    if not locks[mine].modified:
        raise StoreError(f"{store.url}: this store shows no times, so no process could see that a lock is dead")
    others = [name for name, entry in locks.items() if name != mine and _lives(entry, locks[mine])]
    if others:
        raise BusyError(f"{store.url}: is being changed by {_owner(store, others[0])}")


def _lives(lock: Listed, mine: Listed) -> bool:
    return lock.modified > mine.modified - LIFETIME


def _owner(store: Store, name: str) -> str:
    try:
        owner = loads(store.read(name)[0])
        return f"process {owner['process']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
