"""`SortedLines`: lines that come in any order and go in order. Few are objects at the same time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from packer.recipe.long_text import LongText

AT_ONCE = 1 << 16
"""The lines that are objects at the same time."""
SAMPLED = 1 << 8
"""One line in this number is kept, to divide all lines into ranges of equal length."""
_ENCODING = ("utf-8", "surrogatepass")


class SortedLines:
    """Sorts what is added at once, and divides the runs that this gives into the same ranges. A range is sorted alone.

    No line may have a line break.
    """

    def __init__(self) -> None:
        self._text = LongText()
        self._runs: list[_Run] = []
        self._sample: list[str] = []
        self._count = 0

    def add(self, lines: Sequence[str]) -> None:
        """Add at least one line, and at most AT_ONCE."""
        lines = sorted(lines)
        encoded = [line.encode(*_ENCODING) for line in lines]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(lines)) + 1) + len(self._text)
        self._runs.append(_Run(self._text, len(self._text), ends))
        self._text.add(b"\n".join([*encoded, b""]))
        self._sample += lines[::SAMPLED]
        self._count += len(lines)

    def __iter__(self) -> Iterator[str]:
        """Yield all lines in order. None may be added while they are read."""
        self._sample.sort()
        step = max(1, len(self._sample) * AT_ONCE // max(1, 2 * self._count))
        bounds = [[0, *(bisect_left(run, line) for line in self._sample[step::step]), len(run)] for run in self._runs]
        for ranges in zip(*map(pairwise, bounds), strict=True):
            lines: list[str] = []
            for run, (start, stop) in zip(self._runs, ranges, strict=True):
                lines += run.lines(start, stop)
            lines.sort()
            yield from lines


class _Run(Sequence[str]):
    """Sorted lines in a text."""

    def __init__(self, text: LongText, begin: int, ends: NDArray[np.int64]) -> None:
        self._text, self._begin, self._ends = text, begin, ends

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
