"""`RowWeights`: an epoch in which some rows come more often than others, by the classes that they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from readers.class_index import ClassIndex
from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.epoch import Run
from readers.permutation import Numbers, keys_of
from readers.row_ranges import RowRanges

REPEAT, UNIFORM = "repeat-factor", "class-uniform"
THRESHOLD = 0.001
"""The share of rows below which a class is rare, of LVIS."""
Weights = str | tuple[str, float]
"""`"repeat-factor"`, `("repeat-factor", 0.01)` with another share, or `"class-uniform"`."""


@dataclass(frozen=True)
class RowWeights:
    """The weights of the rows of a data set, 8 bytes for each.

    An epoch has as many slots as the data set has rows. The slots go through the weights in equal steps from a start
    that each epoch draws: a row comes as often as its weight says, rounded up or down, and in the mean exactly so.
    """

    name: str
    field: Field
    """The label whose classes weigh the rows."""
    ends: NDArray[np.float64]
    """For each row the weights of this row and all before it."""

    @classmethod
    def of(cls, index: ClassIndex, ranges: RowRanges, weights: Weights) -> RowWeights:
        """Weigh rows by their classes.

        `"repeat-factor"`, of LVIS: the largest of sqrt(threshold / share of rows with the class) over the classes of
        the row, and at least 1. `"class-uniform"`: each class that occurs is drawn equally often, and then any row that
        has it; rows without a class do not come.
        """
        name, threshold = weights if isinstance(weights, tuple) and len(weights) == 2 else (weights, THRESHOLD)
        is_share = isinstance(threshold, Real) and 0 < threshold <= 1
        if name not in (REPEAT, UNIFORM) or (isinstance(weights, tuple) and name != REPEAT) or not is_share:
            raise RequestError(f'weights={weights!r}: expected "{REPEAT}", ("{REPEAT}", {THRESHOLD}) or "{UNIFORM}"')
        rows, classes = index.pairs(ranges)
        if not len(rows):
            raise RequestError(f"weights={weights!r}: no row of this data set has a class")
        places = _places(ranges, rows)
        counts = np.bincount(classes, minlength=len(index.names))
        if name == UNIFORM:
            return cls(repr(weights), index.field, np.bincount(places, 1 / counts[classes], len(ranges)).cumsum())
        factors = np.ones(len(ranges))
        np.maximum.at(factors, places, np.sqrt(threshold * len(ranges) / counts[classes]))
        return cls(repr(weights), index.field, factors.cumsum())

    def rows(self, slots: Numbers, runs: Sequence[Run]) -> Numbers:
        """Return the row of each slot of an epoch."""
        rows, first, count = np.empty_like(slots), 0, len(self.ends)
        for run in runs:
            mine = slice(first, first + run.length)
            start = int(keys_of(run.seed, run.epoch, "weights")[0] >> np.uint64(11)) / (1 << 53)
            steps = (slots[mine] + start) * (self.ends[-1] / count)
            rows[mine] = np.minimum(self.ends.searchsorted(steps, "right"), count - 1)
            first += run.length
        return rows


def _places(ranges: RowRanges, rows: Numbers) -> Numbers:
    """Return the indices in a data set of rows of the pack."""
    parts = ((part, ranges.indices(part).start - part.start) for part in ranges.ranges)
    places = rows.astype(np.int64)
    for part, shift in parts:
        places[(rows >= part.start) & (rows < part.stop)] += shift
    return places
