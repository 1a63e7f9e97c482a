"""`Ahead`: threads that fetch the shards of coming batches, in the order in which they are needed first."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

from readers.contract.errors import ReadError
from readers.stores.evict import CacheFullError

THREADS = 4
MOST_BATCHES = 1024
"""The batches ahead of use whose shards are looked up."""
PAUSES = 0.2, 10.0
"""Seconds after which one thread tries a full cache again: the first time, and at most; each time twice as long. It is
sooner if a shard is not needed any more."""


class Ahead:
    """Fetches shards until `limit` bytes of them wait for their batches.

    A fetch that fails is left to the reader of the batch, which tries it again and reports the error. `release` is
    called with a shard that no batch needs which was looked up.
    """

    def __init__(
        self,
        batches: Iterator[Sequence[int]],
        size: Callable[[int], int],
        fetch: Callable[[int], None],
        release: Callable[[int], None],
        limit: int,
    ) -> None:
        self._batches, self._size, self._fetch, self._release, self._limit = batches, size, fetch, release, limit
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
        self._pause, self._try_at = PAUSES[0], 0.0
        """The seconds to wait after the next refusal of a full cache, and the time to try it again."""
        self._over = self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"segpack-fetch-{number}", daemon=True) for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def received(self) -> None:
        """Note that the next batch was received: its shards are not kept for it any more."""
        with self._changed:
            over: list[int] = []
            if self._coming:
                over = self._forget(self._coming.popleft())
            else:
                self._received += 1
            if over:
                self._has_space()
            self._changed.notify_all()
        for shard in over:
            self._release(shard)

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
                    self._try_at = time.monotonic() + self._pause
            except (ReadError, OSError):
                continue
            else:
                with self._changed:
                    self._has_space()

    def _has_space(self) -> None:
        """Let all threads go on if a full cache made them wait."""
        if self._try_at:
            self._pause, self._try_at = PAUSES[0], 0.0
            self._changed.notify_all()

    def _next(self) -> int | None:
        """Return the next shard to fetch; wait for one. None at the end."""
        with self._changed:
            while not self._closed:
                left = self._try_at - time.monotonic()
                shard = self._pop() if left <= 0 else None
                if shard is not None:
                    return shard
                if self._look_up():
                    continue
                if self._over and not self._coming:
                    return None
                self._changed.wait(left if left > 0 else None)
            return None

    def _pop(self) -> int | None:
        """Take a shard from the queue."""
        while self._queue:
            shard = self._queue.popleft()
            if not self._needed[shard]:  # its batches are over
                continue
            if self._try_at:  # the cache is full: this thread tries, and the others wait for it
                self._pause = min(2 * self._pause, PAUSES[1])
                self._try_at = time.monotonic() + self._pause
            return shard
        return None

    def _look_up(self) -> bool:
        """Look up the shards of the next batch; return whether anything changed."""
        if self._over or self._bytes >= self._limit or len(self._coming) >= MOST_BATCHES:
            return False
        try:
            self._add(next(self._batches))
        except StopIteration:
            self._over = True
        except Exception:  # noqa: BLE001 - the reader of the batches has the same order, and raises it
            self._closed = True
            self._changed.notify_all()
        return True

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

    def _forget(self, shards: Sequence[int]) -> list[int]:
        """Return the shards of a batch that no other batch needs."""
        over = []
        for shard in shards:
            self._needed[shard] -= 1
            if not self._needed[shard]:
                del self._needed[shard]
                self._bytes -= self._size(shard)
                over.append(shard)
        return over
