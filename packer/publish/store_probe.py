"""Find out whether a store keeps conditional writes, before any work is done.

Some stores accept conditions and ignore them, or check them a moment before they write. So names and headers do not
count: threads race for the same objects, below a folder that is deleted afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier

from packer.publish.conditional_writes import created, replaced
from readers.contract.errors import StoreBusyError, StoreError
from readers.stores.store import Store
from readers.stores.waiting import answered

PREFIX = ".probe-"
ROUNDS, RACERS = 8, 4


def fault_of_conditions(store: Store) -> str | None:
    """Return what a store does wrong with conditional writes; None if it keeps them. It needs some 150 requests.

    Raises StoreError if the store cannot be written at all. What cannot be deleted says nothing about conditions, and
    stays: a store may refuse it. Nor is it deleted if the store does not answer. See bucket.sizes_of_pack.
    """
    folder = f"{PREFIX}{secrets.token_hex(8)}"
    names = [f"{folder}/{number}" for number in range(ROUNDS)]
    answered(lambda: store.put(f"{folder}/first", b""))
    with ThreadPoolExecutor(RACERS) as threads:
        fault = next(filter(None, (_fault(store, name, threads) for name in names)), None)
    left = [f"{folder}/first", *names, *(_missing(name) for name in names)]
    with suppress(StoreError):
        answered(lambda: store.delete(left))
    return fault


def _fault(store: Store, name: str, threads: ThreadPoolExecutor) -> str | None:
    """Return what goes wrong in one round with the object `name`."""
    try:
        fault = _race(store, name, threads, partial(created, store, name), "created")
        if fault:
            return fault
        _, old = answered(lambda: store.read(name))
        if replaced(store, _missing(name), b"missing", old):
            return "a missing object was replaced"
        fault = _race(store, name, threads, lambda data: replaced(store, name, data, old), "replaced")
        if fault:
            return fault
        return "an object that had changed was replaced" if replaced(store, name, b"late", old) else None
    except StoreBusyError:
        raise
    except StoreError as error:
        return str(error)


def _race(
    store: Store, name: str, threads: ThreadPoolExecutor, write: Callable[[bytes], bool], what: str
) -> str | None:
    """Let threads write at the same moment; one must win, and its bytes must be there."""
    start = Barrier(RACERS)

    def run(data: bytes) -> bool:
        start.wait()
        return write(data)

    texts = [b"%s by %d" % (what.encode(), number) for number in range(RACERS)]
    won = [text for text, wrote in zip(texts, threads.map(run, texts), strict=True) if wrote]
    if len(won) != 1:
        return f"{len(won)} of {RACERS} writers at once {what} an object"
    return None if answered(lambda: store.read(name))[0] == won[0] else f"an object is not the one that was {what}"


def _missing(name: str) -> str:
    return f"{name}-missing"
