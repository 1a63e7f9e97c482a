"""What a drill counts, and the promises that it saw broken."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts by name, and a line for each promise that was broken."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.broken += other.broken

    def demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.broken.append(otherwise)


def table(tallies: dict[str, Tally]) -> list[str]:
    """A line for each, with the same columns."""
    columns = list(dict.fromkeys(what for tally in tallies.values() for what in tally.counts))
    first = max(map(len, tallies), default=0) + 2
    lines = ["".ljust(first) + "".join(what.rjust(len(what) + 2) for what in columns)]
    for name, tally in tallies.items():
        lines.append(name.ljust(first) + "".join(str(tally.counts[what]).rjust(len(what) + 2) for what in columns))
    return lines


def finish(tallies: dict[str, Tally], most: int = 20) -> None:
    """Print the table and leave, with 1 where a promise was broken."""
    print("\n".join(table(tallies)))
    broken: Sequence[str] = [f"{name}: {line}" for name, tally in tallies.items() for line in tally.broken]
    print(f"promises broken: {len(broken)}")
    sys.exit("\n".join(broken[:most]) if broken else 0)
