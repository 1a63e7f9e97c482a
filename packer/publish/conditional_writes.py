"""Conditional writes whose replies may be lost: create an object, or replace the one that was read.

A write may have happened although the store refuses it: a client that gets no reply tries again, and the second try
meets the object of the first. So a refusal is never believed. The object is read: it has our bytes, or the bytes
of another process, or it is as before, and then the write is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from readers.contract.errors import StoreBusyError
from readers.stores.store import RETRY_SECONDS, Data, Store, Version

T = TypeVar("T")
TRIES = 6
PAUSE = 0.05
"""Seconds before the second try. Each further pause is twice as long; the store's client waits longer by itself."""


def answered(call: Callable[[], T]) -> T:
    """Call a function that may be called twice until the store answers."""
    until = time.monotonic() + RETRY_SECONDS
    for number in range(TRIES - 1):
        try:
            return call()
        except StoreBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE * 2**number)
    return call()


def created(store: Store, name: str, data: Data) -> bool:
    """Create an object, and return whether it has these bytes. False: another process created it."""
    return _written(store, name, data, None, partial(store.create, name, data))


def replaced(store: Store, name: str, data: Data, old: Version | None) -> bool:
    """Replace the object that was read, none if `old` is None, and return whether it has these bytes."""
    if old is None:
        return created(store, name, data)
    return _written(store, name, data, old, partial(store.replace, name, data, old))


def _written(store: Store, name: str, data: Data, old: Version | None, write: Callable[[], bool]) -> bool:
    until = time.monotonic() + RETRY_SECONDS
    for number in range(TRIES):
        time.sleep(PAUSE * (2**number - 1))
        try:
            if write():
                return True
            stored, version = store.read(name)
        except FileNotFoundError:
            if old is not None:
                return False  # another process deleted it
            continue
        except StoreBusyError:
            if number == TRIES - 1 or time.monotonic() > until:
                raise
            continue
        if stored == data:
            return True
        if old is None or version.tag != old.tag:
            return False
    raise StoreBusyError(f"{store.url}/{name}: was not written, although no other process writes it")
