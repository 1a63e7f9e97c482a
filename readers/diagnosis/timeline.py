"""`Timeline`: numbers over time in bounded memory; when it is full, neighbours are added up two by two."""

from __future__ import annotations

from collections.abc import Sequence

Row = list[float]
"""When it began, how many additions it is made of, and their sums."""


class Timeline:
    """Rows are as fine as `most` of them allow; sums over all rows are exact, whatever their number."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._each = 1
        """How many additions make a row."""
        self._rows: list[Row] = []

    def add(self, begin: float, *values: float) -> None:
        """What happened from `begin` on."""
        rows = self._rows
        if rows and rows[-1][1] < self._each:
            _join(rows[-1], [begin, 1, *values])
            return
        if len(rows) >= self._most:
            self._halve()
        self._rows.append([begin, 1, *values])

    def rows(self) -> list[Row]:
        """All of it, oldest first."""
        return [list(row) for row in self._rows]

    def _halve(self) -> None:
        """Put a new list in the place of the old one, which another thread may be reading."""
        self._rows, self._each = joined(self._rows, 2), 2 * self._each


def joined(rows: Sequence[Row], many: int) -> list[Row]:
    """Rows of so many neighbours each."""
    found = []
    for place in range(0, len(rows), many):
        row = list(rows[place])
        for later in rows[place + 1 : place + many]:
            _join(row, later)
        found.append(row)
    return found


def _join(row: Row, later: Row) -> None:
    for place in range(1, len(row)):
        row[place] += later[place]
