"""`SortedLines`: lines that come in any order and go in order. Few are objects at the same time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from packer.spill.long_text import LongNumbers, LongText

AT_ONCE = 1 << 16
"""The lines that are objects at the same time."""
SAMPLED = 1 << 8
"""One line in this number is kept, to divide all lines into ranges of equal length."""
_ENCODING = ("utf-8", "surrogatepass")


class SortedLines:
    """Sorts a run of lines after the other, and divides all runs into the same ranges. A range is sorted alone.

    No line may have a line break.
    """

    def __init__(self) -> None:
        self._text, self._ends = LongText(), LongNumbers()
        self._counts = [0]
        """The lines of each run and all before it."""
        self._sample: list[str] = []
        self._waiting: list[str] = []
        """The last lines, which are not sorted yet."""

    def add(self, lines: Iterable[str]) -> None:
        """Add some lines."""
        self._waiting += lines
        if len(self._waiting) >= AT_ONCE:
            self._sort()

    def _sort(self) -> None:
        """Sort the waiting lines as a run."""
        lines, self._waiting = sorted(self._waiting), []
        encoded = [line.encode(*_ENCODING) for line in lines]
        self._ends.add(np.cumsum(np.fromiter(map(len, encoded), np.int64, len(lines)) + 1) + len(self._text))
        self._text.add(b"\n".join([*encoded, b""]))
        self._sample += lines[::SAMPLED]
        self._counts.append(self._counts[-1] + len(lines))

    def __len__(self) -> int:
        return self._counts[-1] + len(self._waiting)

    def __iter__(self) -> Iterator[str]:
        """Yield all lines in order. None may be added any more."""
        if self._waiting:
            self._sort()
        self._sample.sort()
        step = max(1, len(self._sample) * AT_ONCE // max(1, 2 * len(self)))
        ends = self._ends.all()
        runs = [_Run(self._text, ends, first, last) for first, last in pairwise(self._counts)]
        bounds = [[0, *(bisect_left(run, line) for line in self._sample[step::step]), len(run)] for run in runs]
        for ranges in zip(*map(pairwise, bounds), strict=True):
            lines: list[str] = []
            for run, (start, stop) in zip(runs, ranges, strict=True):
                lines += run.lines(start, stop)
            lines.sort()
            yield from lines


class _Run(Sequence[str]):
    """Sorted lines in a text."""

    def __init__(self, text: LongText, ends: NDArray[np.int64], first: int, last: int) -> None:
        """Take the ends of all lines of the text, and the range of the lines of this run."""
        self._text, self._ends = text, ends[first:last]
        self._begin = int(ends[first - 1]) if first else 0

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.lines(*index.indices(len(self))[:2])
        return self.lines(index, index + 1)[0]

    def lines(self, start: int, stop: int) -> list[str]:
        """Return the lines of a range."""
        if start >= stop:
            return []
        begin = int(self._ends[start - 1]) if start else self._begin
        return self._text[begin : int(self._ends[stop - 1]) - 1].decode(*_ENCODING).split("\n")
