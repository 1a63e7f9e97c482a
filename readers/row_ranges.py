"""`RowRanges`: rows of a pack that need not lie together, such as the rows of several splits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import overload

import numpy as np

from readers.permutation import Numbers


class RowRanges(Sequence[int]):
    """The rows of some ranges, one range after the other. An index counts from 0 over all of them."""

    def __init__(self, ranges: Iterable[range]) -> None:
        self.ranges = joined(ranges)
        self._ends = list(accumulate(map(len, self.ranges)))
        self._shifts = [rows.stop - end for rows, end in zip(self.ranges, self._ends, strict=True)]
        self._many = np.array(self._ends, np.int64), np.array(self._shifts, np.int64)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if len(self.ranges) == 1:
            return self.ranges[0][index]
        number = range(len(self))[index]
        return number + self._shifts[bisect_right(self._ends, number)]

    def at(self, indices: Numbers) -> Numbers:
        """Return the rows at many indices."""
        ends, shifts = self._many
        rows: Numbers = indices + (shifts[0] if len(shifts) == 1 else shifts[ends.searchsorted(indices, "right")])
        return rows

    def indices(self, rows: range) -> range:
        """Return the indices of rows that lie together in one of the ranges."""
        for shift, whole in zip(self._shifts, self.ranges, strict=True):
            if whole.start <= rows.start and rows.stop <= whole.stop:
                return range(rows.start - shift, rows.stop - shift)
        raise ValueError(f"{rows} is not within {self.ranges}")


def joined(ranges: Iterable[range]) -> tuple[range, ...]:
    """Return the ranges that are not empty. Those that follow each other are one."""
    whole: list[range] = []
    for rows in filter(None, ranges):
        if whole and whole[-1].stop == rows.start:
            whole[-1] = range(whole[-1].start, rows.stop)
        else:
            whole.append(rows)
    return tuple(whole)
