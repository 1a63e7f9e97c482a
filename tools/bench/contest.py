"""The contest: rounds in which each takes its turn, after all have proved that they do the work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.contenders import Passes
from bench.cpu import TICK, cpu_seconds

Outcome = TypeVar("Outcome")
LEAST = 1 / TICK
"""No pass is said to have taken less CPU time than can be told."""


@dataclass(frozen=True)
class Pace:
    """Of a pass: pairs in a second, and CPU time for each pair, in milliseconds."""

    rate: float
    cpu: float


@dataclass
class Row:
    """What was measured in each round, with the paces of the copy loop and of our loader in the same."""

    name: str
    goal: float | None = None
    trouble: str = ""
    paces: list[Pace] = field(default_factory=list)
    copy: list[Pace] = field(default_factory=list)
    ours: list[Pace] = field(default_factory=list)

    def note(self, mine: Pace, copy: Pace, ours: Pace) -> None:
        """Another round."""
        self.paces.append(mine)
        self.copy.append(copy)
        self.ours.append(ours)

    @property
    def rates(self) -> list[float]:
        return [pace.rate for pace in self.paces]

    @property
    def of_copy(self) -> list[float]:
        """Which part of the copy loop's rate it reached."""
        return [mine.rate / other.rate for mine, other in zip(self.paces, self.copy, strict=True)]

    @property
    def behind(self) -> list[float]:
        """How many times as fast our loader was."""
        return [other.rate / mine.rate for mine, other in zip(self.paces, self.ours, strict=True)]

    @property
    def costlier(self) -> list[float]:
        """How many times the CPU time of our loader it took."""
        return [mine.cpu / other.cpu for mine, other in zip(self.paces, self.ours, strict=True)]


@dataclass(frozen=True)
class Turn:
    """Whose turn it is: its row, and what makes a pass."""

    row: Row
    passes: Passes


@dataclass(frozen=True)
class Proof:
    """How many pairs came, and a sum that changes with any byte, and when images and labels change partners."""

    pairs: int
    total: int


def take_turns(copy: Turn, ours: Turn, others: Sequence[Turn], rounds: int) -> None:
    """Fill the rows. The first pass of each warms up, and must deliver what the copy loop copies."""
    expected = proof(copy.passes)
    if not proves(ours, expected):
        raise SystemExit(f"{ours.row.name}: {ours.row.trouble}")
    ready = [turn for turn in others if not turn.row.trouble and proves(turn, expected)]
    for _ in range(rounds):
        copying, now = measured(copy.passes), measured(ours.passes)
        copy.row.note(copying, copying, now)
        ours.row.note(now, copying, now)
        for turn in ready:
            mine = attempt(turn, measured)
            if mine is not None:
                turn.row.note(mine, copying, now)
        ready = [turn for turn in ready if not turn.row.trouble]


def proves(turn: Turn, expected: Proof) -> bool:
    """Whether its pass is the right one; what is wrong is noted."""
    found = attempt(turn, proof)
    if found not in (None, expected):
        turn.row.trouble = f"delivered {found}, expected {expected}"
    print(f"  {turn.row.name:40} {turn.row.trouble or f'{expected} as expected'}", file=sys.stderr, flush=True)
    return not turn.row.trouble


def attempt(turn: Turn, act: Callable[[Passes], Outcome]) -> Outcome | None:
    """What comes of a pass; where it fails, nothing, and the trouble is noted."""
    try:
        return act(turn.passes)
    except Exception as error:  # noqa: BLE001 - what others raise is theirs to choose
        turn.row.trouble = f"{type(error).__name__}: {error}"
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
        int(labels[-1, -1, -1])  # the batch is there
    seconds = time.perf_counter() - started
    return Pace(pairs / seconds, max(cpu_seconds() - spent, LEAST) / pairs * 1e3)
