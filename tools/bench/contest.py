"""The contest: rounds in which each takes its turn, after all have proved that they do the work."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from contenders import Passes


@dataclass
class Row:
    """What was measured: samples per second in each round, and those of the copy loop and of our loader in the same."""

    name: str
    goal: float | None = None
    trouble: str = ""
    rates: list[float] = field(default_factory=list)
    copy: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    @property
    def of_copy(self) -> list[float]:
        """Which part of the copy loop's rate it reached."""
        return [mine / other for mine, other in zip(self.rates, self.copy, strict=True)]

    @property
    def behind(self) -> list[float]:
        """How many times as fast our loader was."""
        return [other / mine for mine, other in zip(self.rates, self.ours, strict=True)]


@dataclass(frozen=True)
class Turn:
    """Whose turn it is: its row, and what makes a pass; nothing, where there was trouble before."""

    row: Row
    passes: Passes | None


@dataclass(frozen=True)
class Proof:
    """How many pairs came, and a sum that is another one when a byte is, or when image and label do not belong together."""

    pairs: int
    total: int


def take_turns(copy: Turn, ours: Turn, others: Sequence[Turn], rounds: int) -> None:
    """Fill the rows. The first pass of each warms up, and must deliver what the copy loop copies."""
    expected = proof(copy.passes)
    ready = [turn for turn in (ours, *others) if turn.passes and proves(turn, expected)]
    if ours not in ready:
        raise SystemExit(f"{ours.row.name}: {ours.row.trouble}")
    for _ in range(rounds):
        copying = rate(copy.passes)
        copy.row.rates.append(copying)
        copy.row.copy.append(copying)
        ours_now = copying
        for turn in ready:
            now = rate(turn.passes)
            ours_now = now if turn is ours else ours_now
            turn.row.rates.append(now)
            turn.row.copy.append(copying)
            turn.row.ours.append(ours_now)
        copy.row.ours.append(ours_now)


def proves(turn: Turn, expected: Proof) -> bool:
    """Whether its pass is the right one; what is wrong is noted."""
    try:
        found = proof(turn.passes)
    except Exception as error:  # noqa: BLE001 - what others raise is theirs to choose
        turn.row.trouble = f"{type(error).__name__}: {error}"
    else:
        if found != expected:
            turn.row.trouble = f"delivered {found}, expected {expected}"
    print(f"  {turn.row.name:40} {turn.row.trouble or f'{expected} as expected'}", file=sys.stderr, flush=True)
    return not turn.row.trouble


def proof(passes: Passes | None) -> Proof:
    pairs, total = 0, 0
    for images, labels in passes() if passes else ():
        sums = [part.reshape(len(part), -1).sum(1).tolist() for part in (images, labels)]
        pairs += len(images)
        total += sum(image * (1 + label) for image, label in zip(*sums, strict=True))
    return Proof(pairs, total)


def rate(passes: Passes | None) -> float:
    """Samples per second of a pass."""
    started, samples = time.perf_counter(), 0
    for images, labels in passes() if passes else ():
        samples += len(images)
        int(labels[-1, -1, -1])  # the batch is there
    return samples / (time.perf_counter() - started)
