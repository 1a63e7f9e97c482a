"""`Ahead`: threads that fetch the shards of coming batches, in the order in which they are needed first."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

from readers.contract.errors import ReadError
from readers.stores.evict import CacheFullError

THREADS = 4
MOST_BATCHES = 1024
"""The batches ahead of use whose shards are looked up."""
PAUSE = 0.2
"""Seconds after which a full cache is tried again, or sooner if a batch was received."""


class Ahead:
    """Fetches shards until `limit` bytes of them wait for their batches.

    A fetch that fails is left to the reader of the batch, which tries it again and reports the error.
    """

    def __init__(
        self, batches: Iterator[Sequence[int]], size: Callable[[int], int], fetch: Callable[[int], None], limit: int
    ) -> None:
        self._batches, self._size, self._fetch, self._limit = batches, size, fetch, limit
        self._changed = threading.Condition()
        self._coming: deque[Sequence[int]] = deque()
        """The shards of the batches that were looked up and not received yet."""
        self._needed: Counter[int] = Counter()
        """The number of these batches that need a shard."""
        self._bytes = 0
        """The bytes of these shards."""
        self._queue: deque[int] = deque()
        self._received = 0
        """The batches that were received before they were looked up."""
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"segpack-fetch-{number}", daemon=True) for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def received(self) -> None:
        """Note that the next batch was received: its shards are not kept for it any more."""
        with self._changed:
            if self._coming:
                self._forget(self._coming.popleft())
            else:
                self._received += 1
            self._changed.notify_all()

    def close(self) -> None:
        """End the threads, each after the shard that it fetches."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (shard := self._next()) is not None:
            try:
                self._fetch(shard)
            except CacheFullError:
                with self._changed:
                    if self._needed[shard]:
                        self._queue.appendleft(shard)
                    self._changed.wait(PAUSE)
            except (ReadError, OSError):
                continue

    def _next(self) -> int | None:
        """Return the next shard to fetch; wait for one. None at the end."""
        with self._changed:
            while not self._closed:
                while self._queue:
                    shard = self._queue.popleft()
                    if self._needed[shard]:  # else its batches are over
                        return shard
                if self._bytes < self._limit and len(self._coming) < MOST_BATCHES:
                    try:
                        self._add(next(self._batches))
                        continue
                    except StopIteration:
                        pass
                    except Exception:  # noqa: BLE001 - the reader of the batches has the same order, and raises it
                        self._closed = True
                        self._changed.notify_all()
                        return None
                    if not self._coming:
                        return None
                self._changed.wait()
            return None

    def _add(self, shards: Sequence[int]) -> None:
        """Note the shards of the next batch."""
        if self._received:
            self._received -= 1
            return
        self._coming.append(shards)
        for shard in shards:
            if not self._needed[shard]:
                self._bytes += self._size(shard)
                self._queue.append(shard)
            self._needed[shard] += 1

    def _forget(self, shards: Sequence[int]) -> None:
        for shard in shards:
            self._needed[shard] -= 1
            if not self._needed[shard]:
                del self._needed[shard]
                self._bytes -= self._size(shard)
