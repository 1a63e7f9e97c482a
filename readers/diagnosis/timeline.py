"""`Timeline`: numbers over time in bounded memory. When it is full, each two neighbours are added up."""

from __future__ import annotations

from collections.abc import Sequence

Row = list[float]
"""Begin, number of additions, and their sums."""


class Timeline:
    """At most `most` rows, each as short as possible. Sums over all rows are exact."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._each = 1
        """The number of additions in a row."""
        self._rows: list[Row] = []

    def add(self, begin: float, *values: float) -> None:
        """Add numbers of the time from `begin` on."""
        rows = self._rows
        if rows and rows[-1][1] < self._each:
            _join(rows[-1], [begin, 1, *values])
            return
        if len(rows) >= self._most:
            self._halve()
        self._rows.append([begin, 1, *values])

    def rows(self) -> list[Row]:
        """Return all rows, oldest first."""
        return [list(row) for row in self._rows]

    def _halve(self) -> None:
        """Join each two rows, in a new list: another thread may be reading the old one."""
        self._rows, self._each = joined(self._rows, 2), 2 * self._each


def joined(rows: Sequence[Row], count: int) -> list[Row]:
    """Join each `count` neighbouring rows."""
    lines = []
    for first in range(0, len(rows), count):
        row = list(rows[first])
        for later in rows[first + 1 : first + count]:
            _join(row, later)
        lines.append(row)
    return lines


def _join(row: Row, later: Row) -> None:
    for column in range(1, len(row)):
        row[column] += later[column]
