"""The counts of a drill, and the promises that it found broken."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tables import aligned


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
    """Return a line for each tally, with the same columns."""
    columns = list(dict.fromkeys(name for tally in tallies.values() for name in tally.counts))
    rows = [(name, *(str(tally.counts[column]) for column in columns)) for name, tally in tallies.items()]
    return list(aligned([("", *columns), *rows]))


def finish(tallies: dict[str, Tally], most: int = 20) -> None:
    """Print the table and exit, with 1 if a promise was broken."""
    print("\n".join(table(tallies)))
    broken: Sequence[str] = [f"{name}: {line}" for name, tally in tallies.items() for line in tally.broken]
    print(f"promises broken: {len(broken)}")
    sys.exit("\n".join(broken[:most]) if broken else 0)
