"""Where the time of an epoch goes: waiting for data, finishing batches, computing; by the GPU's own clock on a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from readers import DeviceBatches

Moment = float | torch.cuda.Event
LATE = 1e-3
"""A step that waits longer, in seconds, has waited."""


@dataclass(frozen=True)
class Step:
    """Seconds of one step: until its batch was there, until it was finished, until the model was done with it.

    On a GPU waiting and finishing are the gap on its stream behind the step before: time in which it was idle.
    """

    waiting: float
    finishing: float
    computing: float


class Watch:
    """Iterate finished batches through it; the steps are told when the pass is over and the device is done."""

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
        """Of a gap no more is waiting than the process stood still for the source; the rest is copying, finishing."""
        gaps = [(_between(before, begun), _between(begun, ended), wait) for before, begun, ended, wait in self._marks]
        return tuple(Step(min(gap, wait), gap - min(gap, wait), computing) for gap, computing, wait in gaps)

    def _now(self) -> Moment:
        """On a GPU, when its stream has come to here."""
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
