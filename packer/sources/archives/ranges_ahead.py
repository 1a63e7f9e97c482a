"""`RangesAhead`: threads read parts of files in a store before they are asked for, near ones in one request."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from threading import Lock

from packer.errors import PackError
from packer.sources.archives.archive_files import Span

MOST_BYTES = 64 << 20
"""The most bytes that were requested and are not forgotten yet, unless one part alone has more."""
WINDOW = MOST_BYTES // 2
"""The bytes of the parts that are sorted by their places and joined. Half of the memory waits, half is used."""
GAP = 1 << 16
"""Bytes between two parts that are read, too, so that one request serves both."""
MOST_TOGETHER = 8 << 20
"""The most bytes of a request for several parts."""
Read = Callable[[Span], bytes]


class _Request:
    """A request for parts of a file that are near each other."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self.unused = len(spans)
        start = spans[0].start
        self.whole = Span(spans[0].file, start, max(span.start + span.size for span in spans) - start)
        self.answer: Future[bytes] = Future()


class RangesAhead:
    """Reads parts in about the order in which they are taken. `take` returns None of a part that is not expected."""

    def __init__(self, read: Read, threads: Executor) -> None:
        self._read, self._threads = read, threads
        self._lock = Lock()
        self._coming: deque[Span] = deque()
        self._started: dict[Span, _Request] = {}
        self._bytes = 0
        self._failed: PackError | None = None

    def expect(self, spans: Iterable[Span]) -> None:
        """Begin to read these parts. Those that were expected before are forgotten."""
        coming = deque(dict.fromkeys(spans))
        with self._lock:
            for request in self._started.values():
                request.answer.cancel()
            self._coming, self._started, self._bytes, self._failed = coming, {}, 0, None
            self._go_on()

    def take(self, span: Span) -> bytes | None:
        """Return an expected part. It is kept until it is forgotten."""
        with self._lock:
            request = self._started.get(span)
        if request is None:
            return None
        try:
            data = request.answer.result()
        except CancelledError:
            return None
        start = span.start - request.whole.start
        return data[start : start + span.size]

    def forget(self, spans: Iterable[Span]) -> None:
        """Drop parts that no row needs again, and read others."""
        with self._lock:
            for span in spans:
                request = self._started.pop(span, None)
                if request is not None:
                    request.unused -= 1
                    self._bytes -= 0 if request.unused else request.whole.size
            self._go_on()

    def _go_on(self) -> None:
        """Request windows as far as memory allows. The lock must be held."""
        while self._coming and self._bytes <= MOST_BYTES - WINDOW:
            for request in _joined(self._window()):
                self._started.update(dict.fromkeys(request.spans, request))
                self._bytes += request.whole.size
                request.answer = self._threads.submit(self._answer, request.whole)

    def _answer(self, span: Span) -> bytes:
        """Read a part. After a store that does not answer no further request waits for it, as the build ends."""
        if self._failed is not None:
            raise self._failed
        try:
            return self._read(span)
        except PackError as error:
            self._failed = error
            raise

    def _window(self) -> list[Span]:
        """Take the next parts from those that are coming; with the gaps between them they fill a window at most."""
        window: list[Span] = []
        size = 0
        while self._coming and (not window or size + self._coming[0].size + GAP <= WINDOW):
            window.append(self._coming.popleft())
            size += window[-1].size + GAP
        return window


def _joined(window: Sequence[Span]) -> Iterator[_Request]:
    """Yield a request for each group of parts that are near each other, in the order in which they are needed."""
    order = {span: number for number, span in enumerate(window)}
    groups: list[list[Span]] = []
    end = 0
    for span in sorted(window):
        stop, first = span.start + span.size, groups[-1][0] if groups else None
        is_near = first is not None and span.file == first.file and span.start <= end + GAP
        if first is not None and is_near and max(end, stop) - first.start <= MOST_TOGETHER:
            groups[-1].append(span)
            end = max(end, stop)
        else:
            groups.append([span])
            end = stop
    yield from map(_Request, sorted(groups, key=lambda group: min(map(order.__getitem__, group))))
