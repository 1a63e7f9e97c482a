"""Conditional writes whose replies may be lost: create an object, or replace the one that was read.

A write may have happened although the store refuses it: a client that gets no reply tries again, and the second try
meets the object of the first. So a refusal is never believed. The object is read: it has our bytes, or the bytes
of another process, or it is as before, and then the write is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from readers.contract.errors import StoreBusyError
from readers.stores.object_store import longer_for
from readers.stores.store import Data, Store, Version
from readers.stores.waiting import Patience

TRIES = 6
"""Times that a write is tried which the store refuses, although the object is unchanged."""


def created(store: Store, name: str, data: Data) -> bool:
    """Create an object, and return whether it has these bytes. False: another process created it."""
    return _written(store, name, data, None, partial(store.create, name, data))


def replaced(store: Store, name: str, data: Data, old: Version | None) -> bool:
    """Replace the object that was read, none if `old` is None, and return whether it has these bytes."""
    if old is None:
        return created(store, name, data)
    return _written(store, name, data, old, partial(store.replace, name, data, old))


def _written(store: Store, name: str, data: Data, old: Version | None, write: Callable[[], bool]) -> bool:
    refusal = StoreBusyError(f"{store.url}/{name}: was not written, although no other process writes it")
    refused, again, patience = 0, Patience(), Patience(longer_for(data))
    while refused < TRIES:
        try:
            if write():
                return True
            stored, version = store.read(name)
        except FileNotFoundError:
            if old is not None:
                return False  # another process deleted it
        except StoreBusyError as error:
            patience.wait(error)
            continue
        else:
            if stored == data:
                return True
            if old is None or version.tag != old.tag:
                return False
        again.wait(refusal)
        refused += 1
    raise refusal
