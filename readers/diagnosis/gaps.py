"""`Gaps`: how long a GPU had nothing to do between one step and the next, told by events on its stream."""

from __future__ import annotations

from collections import deque

import torch

MOST_PENDING = 512


class Gaps:
    """Call `ended` before the next batch is asked for and `began` when it is there; nothing here waits for the GPU.

    The GPU works behind the program that feeds it. If it is still at the old step when the batch arrives, the two
    events follow each other at once; if it had to wait, for the batch or its copy, they are as far apart as it waited.
    """

    def __init__(self) -> None:
        self._free: list[torch.cuda.Event] = []
        self._end: torch.cuda.Event | None = None
        self._pending: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()

    def ended(self) -> None:
        """The program has given the GPU all work of a step."""
        self._end = self._recorded()

    def began(self) -> None:
        """The next batch is in the program's hands; that of a pass's first step has no step before it."""
        if self._end is not None:
            self._pending.append((self._end, self._recorded()))
            self._end = None
        if len(self._pending) > MOST_PENDING:
            self._pending.popleft()

    def left(self) -> None:
        """What comes next does not follow the step before."""
        self._end = None

    def measured(self) -> list[float]:
        """Seconds of each gap that the GPU has come past since the last call."""
        found = []
        while self._pending and self._pending[0][1].query():  # type: ignore[no-untyped-call]
            end, begin = self._pending.popleft()
            found.append(end.elapsed_time(begin) / 1000)
            self._free += (end, begin)
        return found

    def _recorded(self) -> torch.cuda.Event:
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream())
        return event
