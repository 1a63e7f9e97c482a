"""The time of an epoch in parts: waiting for data, finishing batches, computing. On a GPU by its own clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from readers import DeviceBatches

Moment = float | torch.cuda.Event
LATE = 1e-3
"""Seconds from which on a step counts as waiting."""


@dataclass(frozen=True)
class Step:
    """The seconds of one step: until its batch arrives, until the batch is finished, until the model is done.

    On a GPU, waiting and finishing are the gap on its stream after the previous step, in which it was idle.
    """

    waiting: float
    finishing: float
    computing: float


class StepTimer:
    """An iterable over finished batches. Read `steps` when the pass is over and the device is done."""

    def __init__(self, batches: DeviceBatches, device: torch.device) -> None:
        self._batches, self._device = batches, device
        self._marks: list[tuple[Moment, Moment, Moment, float]] = []

    def __iter__(self) -> Iterator[Any]:
        ended, waited = self._now(), self._batches.waited
        for batch in self._batches:
            begun, waiting = self._now(), self._batches.waited - waited
            yield batch
            before, ended, waited = ended, self._now(), self._batches.waited
            self._marks.append((before, begun, ended, waiting))

    def steps(self) -> tuple[Step, ...]:
        """Return the steps. Waiting is at most the time that the process waited; the rest of a gap is finishing."""
        gaps = [(_between(before, begun), _between(begun, ended), wait) for before, begun, ended, wait in self._marks]
        return tuple(Step(min(gap, wait), gap - min(gap, wait), computing) for gap, computing, wait in gaps)

    def _now(self) -> Moment:
        """Return the time, or on a GPU an event on its stream."""
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event


def _between(first: Moment, second: Moment) -> float:
    if isinstance(first, float) and isinstance(second, float):
        return second - first
    assert isinstance(first, torch.cuda.Event)
    assert isinstance(second, torch.cuda.Event)
    return float(first.elapsed_time(second)) / 1e3
