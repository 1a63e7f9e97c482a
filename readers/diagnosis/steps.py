"""`Steps`: the time that each step of a training waits for data, copies it, and computes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch

from readers.diagnosis.record import Totals
from readers.diagnosis.timeline import Row, Timeline

MOST_PENDING = 512


class Gaps:
    """The time that the GPU waits between steps, measured with events. Nothing here waits for the GPU.

    Call `ended` before the next batch is requested, and `began` when it has arrived. The GPU runs behind the program.
    If it still computes the old step when the batch arrives, the two events follow each other at once. If it had to
    wait, for the batch or its copy, the time between the events is the time that it waited.
    """

    def __init__(self) -> None:
        self._free: list[torch.cuda.Event] = []
        self._end: torch.cuda.Event | None = None
        self._pending: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()

    def ended(self) -> None:
        """Mark the end of a step: the program has queued all its work on the GPU."""
        self._end = self._recorded()

    def began(self) -> None:
        """Mark the arrival of the next batch. The first batch of a pass has no step before it."""
        if self._end is not None:
            self._pending.append((self._end, self._recorded()))
            self._end = None
        if len(self._pending) > MOST_PENDING:
            self._pending.popleft()

    def left(self) -> None:
        """Forget the last step: the next batch does not follow it."""
        self._end = None

    def measured(self) -> list[float]:
        """Return the seconds of each gap that the GPU has passed since the last call."""
        seconds = []
        while self._pending and self._pending[0][1].query():  # type: ignore[no-untyped-call]
            end, begin = self._pending.popleft()
            seconds.append(end.elapsed_time(begin) / 1000)
            self._free += (end, begin)
        return seconds

    def _recorded(self) -> torch.cuda.Event:
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream())
        return event


GPU_WAITED = 0.02
"""If the GPU is idle for more than this fraction of a step, the step counts as one in which it waited."""


class Steps:
    """The times of steps, each from the request for a batch to the next request. A step costs a few microseconds."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._timeline = Timeline()
        self._gaps: Gaps | None = None
        self._asked = self._arrived = self._waited = 0.0
        self._first = True

    def of_pass(self, source: Any, begin: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        """Yield the batches of one pass through `source`, which `begin` starts at once.

        If the source has an attribute `waited`, that part of the time is waiting, and the rest is copying.
        """
        begun = time.perf_counter()
        batches = begin(source)
        self.totals.passes += 1
        self.totals.starting += time.perf_counter() - begun
        return self._batches(batches, source)

    def _batches(self, batches: Iterator[Any], source: Any) -> Iterator[Any]:
        self._first = True
        try:
            while True:
                self._ask()
                waited = getattr(source, "waited", None)
                try:
                    batch = next(batches)
                except StopIteration:
                    self.totals.starting += time.perf_counter() - self._asked
                    return
                self._arrive(None if waited is None else source.waited - waited)
                try:
                    yield batch
                finally:  # also if the pass ends in this step
                    self._computed()
        finally:
            if self._gaps is not None:
                self._gaps.left()
            if isinstance(batches, Generator):
                batches.close()

    def rows(self) -> list[Row]:
        """Return rows of: begin (`perf_counter`), steps, seconds of waiting, copying, computing and an idle GPU."""
        return self._timeline.rows()

    def _ask(self) -> None:
        if self._gaps is None and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            self._gaps = Gaps()
        if self._gaps is not None:
            self._gaps.ended()
        self._asked = time.perf_counter()

    def _arrive(self, waited: float | None) -> None:
        """Take the time of a batch's arrival. `waited` is the part of it that was waiting; None means all."""
        if self._gaps is not None:
            if self._first:
                self._gaps.left()
            self._gaps.began()
        self._arrived = time.perf_counter()
        self._waited = self._arrived - self._asked if waited is None else waited

    def _computed(self) -> None:
        now, totals = time.perf_counter(), self.totals
        copying = max(0.0, self._arrived - self._asked - self._waited)
        computing = now - self._arrived
        totals.steps += 1
        totals.copying += copying
        totals.computing += computing
        if self._first:
            totals.starting += self._waited
        else:
            totals.waiting += self._waited
        self._timeline.add(self._asked, 0.0 if self._first else self._waited, copying, computing, self._measured())
        self._first = False

    def _measured(self) -> float:
        """Return the seconds that the GPU waited, over the steps that it has passed since the last call."""
        if self._gaps is None:
            return 0.0
        waits = self._gaps.measured()
        totals = self.totals
        step = (totals.waiting + totals.copying + totals.computing) / max(1, totals.steps)
        totals.gaps += len(waits)
        totals.idle += sum(waits)
        totals.idle_steps += sum(gap > GPU_WAITED * step for gap in waits)
        return sum(waits)
