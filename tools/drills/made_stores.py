"""Stores in memory for drills and tests: a good one, bad ones that ignore conditions, and one with faults."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from readers.contract.errors import StoreBusyError
from readers.stores.store import Data, Listed, Store, Version, check_name

KEPT, IGNORED, LATE = "kept", "ignored", "late"
"""Conditions are kept, ignored, or checked a moment before the write."""


class MemoryStore:
    """A store in memory. As in S3, the tag of an object is a digest of its bytes."""

    def __init__(self, conditions: str = KEPT) -> None:
        self.url = "memory://"
        self.objects: dict[str, tuple[bytes, str, float]] = {}
        self._conditions, self._lock = conditions, Lock()

    def list(self, folder: str) -> Iterator[Listed]:
        prefix = f"{check_name(folder)}/" if folder else ""
        for name, (data, tag, when) in sorted(self.objects.items()):
            if name.startswith(prefix):
                yield Listed(name, len(data), tag, when)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        try:
            data, tag, _ = self.objects[check_name(name)]
        except KeyError:
            raise FileNotFoundError(name) from None
        return data[start:stop], Version(tag)

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        data, _ = self.read(name)
        for start in range(0, len(data), 1 << 16):
            write(memoryview(data)[start : start + (1 << 16)])

    def put(self, name: str, data: Data) -> None:
        tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
        self.objects[check_name(name)] = bytes(data), tag, time.time()

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.objects.pop(check_name(name), None)

    def create(self, name: str, data: Data) -> bool:
        return self._put_if(name, data, None)

    def replace(self, name: str, data: Data, old: Version) -> bool:
        return self._put_if(name, data, old)

    def _put_if(self, name: str, data: Data, old: Version | None) -> bool:
        if self._conditions == KEPT:
            with self._lock:
                if self._is(name, old):
                    self.put(name, data)
                    return True
                return False
        if self._conditions == LATE:
            if not self._is(name, old):
                return False
            time.sleep(0.002)
        self.put(name, data)
        return True

    def _is(self, name: str, old: Version | None) -> bool:
        found = self.objects.get(check_name(name))
        return found is None if old is None else found is not None and found[1] == old.tag


class FaultyStore:
    """Another store, with faults in a share of the calls.

    A call fails before it reaches the store, or its reply is lost. Of a conditional write the client may have tried
    again by itself, so that it is refused although it was done. A download may be cut.
    """

    def __init__(self, store: Store, dice: random.Random, share: float) -> None:
        self.url, self._store, self._dice, self._share = store.url, store, dice, share
        self.faults: Counter[str] = Counter()

    def _fault(self, call: str, *kinds: str) -> str:
        if self._dice.random() >= self._share:
            return ""
        kind = self._dice.choice(kinds)
        self.faults[f"{call}: {kind}"] += 1
        if kind == "fails":
            raise StoreBusyError(f"{self.url}: a made-up fault")
        return kind

    def list(self, folder: str) -> Iterator[Listed]:
        self._fault("list", "fails")
        return self._store.list(folder)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        self._fault("read", "fails")
        return self._store.read(name, start, stop)

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        kind = self._fault("fetch", "fails", "cut")
        if kind:
            data, _ = self._store.read(name)
            write(memoryview(data)[: len(data) // 2])
            raise StoreBusyError(f"{self.url}/{name}: was cut")
        self._store.fetch(name, write)

    def put(self, name: str, data: Data) -> None:
        kind = self._fault("put", "fails", "reply lost")
        self._store.put(name, data)
        if kind:
            raise StoreBusyError(f"{self.url}/{name}: no reply")

    def delete(self, names: Iterable[str]) -> None:
        self._fault("delete", "fails")
        self._store.delete(names)

    def create(self, name: str, data: Data) -> bool:
        return self._conditional("create", lambda: self._store.create(name, data))

    def replace(self, name: str, data: Data, old: Version) -> bool:
        return self._conditional("replace", lambda: self._store.replace(name, data, old))

    def _conditional(self, call: str, write: Callable[[], bool]) -> bool:
        kind = self._fault(call, "fails", "reply lost", "refused after its own try")
        done = write()
        if kind == "reply lost":
            raise StoreBusyError(f"{self.url}: no reply")
        return write() if kind else done
