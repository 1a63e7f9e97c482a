"""The statistics of a row that was counted in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import add

from readers.contract.statistics import ClassStatistics, FieldStatistics


def of_one_row(parts: Iterable[FieldStatistics], area: int) -> FieldStatistics:
    """Return the statistics of a row of this number of pixels. A class that occurs in two parts is in one row."""
    total = reduce(add, parts)
    if not isinstance(total, ClassStatistics):
        return total
    rows = tuple([1 if count else 0 for count in total.classes])
    return replace(total, rows=rows, areas=tuple([area * row for row in rows]))
