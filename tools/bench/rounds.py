"""Rounds in which candidates take turns, after each has proved that it does the work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.cpu import TICK, cpu_seconds
from bench.libraries import Passes

Outcome = TypeVar("Outcome")
LEAST = 1 / TICK
"""The shortest CPU time that can be measured, in seconds."""


@dataclass(frozen=True)
class Pace:
    """The speed of a pass: pairs per second, and CPU time of a pair in milliseconds."""

    rate: float
    cpu: float


@dataclass
class ReadResult:
    """The paces of a candidate in each round, and those of the copy loop and of our loader in the same rounds."""

    name: str
    goal: float | None = None
    trouble: str = ""
    paces: list[Pace] = field(default_factory=list)
    copy: list[Pace] = field(default_factory=list)
    ours: list[Pace] = field(default_factory=list)

    def add_round(self, mine: Pace, copy: Pace, ours: Pace) -> None:
        self.paces.append(mine)
        self.copy.append(copy)
        self.ours.append(ours)

    @property
    def rates(self) -> list[float]:
        return [pace.rate for pace in self.paces]

    @property
    def of_copy(self) -> list[float]:
        """The ratio of its rate to that of the copy loop."""
        return [mine.rate / other.rate for mine, other in zip(self.paces, self.copy, strict=True)]

    @property
    def behind(self) -> list[float]:
        """The ratio of our loader's rate to its rate."""
        return [other.rate / mine.rate for mine, other in zip(self.paces, self.ours, strict=True)]

    @property
    def costlier(self) -> list[float]:
        """The ratio of its CPU time to that of our loader."""
        return [mine.cpu / other.cpu for mine, other in zip(self.paces, self.ours, strict=True)]


@dataclass(frozen=True)
class Candidate:
    """A function that makes a pass, and the result that it fills."""

    result: ReadResult
    passes: Passes


@dataclass(frozen=True)
class Proof:
    """The number of pairs of a pass, and a sum that changes with any byte, or if images and labels are swapped."""

    pairs: int
    total: int


def take_turns(copy: Candidate, ours: Candidate, others: Sequence[Candidate], rounds: int) -> None:
    """Fill the results. The first pass of each candidate warms up, and must deliver what the copy loop copies."""
    expected = proof(copy.passes)
    if not proves(ours, expected):
        raise SystemExit(f"{ours.result.name}: {ours.result.trouble}")
    ready = [other for other in others if not other.result.trouble and proves(other, expected)]
    for _ in range(rounds):
        copying, now = measured(copy.passes), measured(ours.passes)
        copy.result.add_round(copying, copying, now)
        ours.result.add_round(now, copying, now)
        for other in ready:
            mine = attempt(other, measured)
            if mine is not None:
                other.result.add_round(mine, copying, now)
        ready = [other for other in ready if not other.result.trouble]


def proves(candidate: Candidate, expected: Proof) -> bool:
    """Check that a pass delivers the right pairs, and note in the result what is wrong."""
    result, found = candidate.result, attempt(candidate, proof)
    if found not in (None, expected):
        result.trouble = f"delivered {found}, expected {expected}"
    print(f"  {result.name:40} {result.trouble or f'{expected} as expected'}", file=sys.stderr, flush=True)
    return not result.trouble


def attempt(candidate: Candidate, act: Callable[[Passes], Outcome]) -> Outcome | None:
    """Return what `act` makes of a pass. If it fails, note the error in the result and return None."""
    try:
        return act(candidate.passes)
    except Exception as error:  # noqa: BLE001 - other libraries raise what they like
        candidate.result.trouble = f"{type(error).__name__}: {error}"
        return None


def proof(passes: Passes) -> Proof:
    pairs, total = 0, 0
    for images, labels in passes():
        sums = [part.reshape(len(part), -1).sum(1).tolist() for part in (images, labels)]
        pairs += len(images)
        total += sum(image * (1 + label) for image, label in zip(*sums, strict=True))
    return Proof(pairs, total)


def measured(passes: Passes) -> Pace:
    started, spent, pairs = time.perf_counter(), cpu_seconds(), 0
    for images, labels in passes():
        pairs += len(images)
        int(labels[-1, -1, -1])  # waits until the batch is there
    seconds = time.perf_counter() - started
    return Pace(pairs / seconds, max(cpu_seconds() - spent, LEAST) / pairs * 1e3)
