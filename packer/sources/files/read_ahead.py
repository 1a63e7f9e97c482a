"""`ObjectsAhead`: threads read objects of a store before they are asked for, so that no decoder waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeAlias

from readers.stores.store import Version

THREADS = 16
MOST_OBJECTS, MOST_BYTES = 64, 64 << 20
"""Objects that are read and not taken yet, and their bytes: with an image and a label 32 rows."""
FIRST_GUESS = 1 << 20
"""The bytes of an object, until one was read. Later it is the largest so far."""
Object: TypeAlias = "tuple[bytes, Version]"


class ObjectsAhead:
    """Reads objects in the order in which they will be taken. What is taken in another order is read at once."""

    def __init__(self, read: Callable[[str], Object]) -> None:
        self._read = read
        self._lock = Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._coming: dict[str, None] = {}
        self._started: dict[str, Future[Object]] = {}
        self._arrived: dict[str, int] = {}
        self._largest = 0

    def expect(self, names: Iterable[str]) -> None:
        """Begin to read these objects. Those that were expected before and not taken are forgotten."""
        with self._lock:
            for future in self._started.values():
                future.cancel()
            self._started, self._arrived = {}, {}
            self._coming = dict.fromkeys(names)
            self._go_on()

    def look(self, name: str) -> Object:
        """Return an object, and keep it until it is taken."""
        return self._future(name).result()

    def take(self, name: str) -> Object:
        """Return an object that no thread will take again."""
        future = self._future(name)
        try:
            return future.result()
        finally:
            with self._lock:
                if self._started.get(name) is future:
                    del self._started[name]
                    self._arrived.pop(name, None)
                self._go_on()

    def _future(self, name: str) -> Future[Object]:
        with self._lock:
            return self._started.get(name) or self._start(name)

    def _start(self, name: str) -> Future[Object]:
        self._coming.pop(name, None)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS)
        future = self._started[name] = self._threads.submit(self._arrive, name)
        return future

    def _arrive(self, name: str) -> Object:
        """Read an object, note its size, and begin to read others."""
        item = self._read(name)
        size = len(item[0])
        with self._lock:
            self._largest = max(self._largest, size)
            if name in self._started:
                self._arrived[name] = size
            self._go_on()
        return item

    def _go_on(self) -> None:
        """Begin to read what comes next, as far as memory allows. The lock must be held."""
        while self._coming and len(self._started) < MOST_OBJECTS:
            unknown = len(self._started) - len(self._arrived) + 1
            if self._started and sum(self._arrived.values()) + unknown * (self._largest or FIRST_GUESS) > MOST_BYTES:
                return
            self._start(next(iter(self._coming)))
