"""The window of a plane of numbers: which of them is drawn as black, and which as white."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.kinds import PICTURE

MOST_READ = 1 << 16
"""Percentiles are taken from at most about this number of pixels, evenly spread over the row."""
PERCENTILES = 1, 99


class ShownPart(NamedTuple):
    """The numbers at both ends of a scale."""

    low: float
    high: float

    def scaled(self, plane: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return numbers as 0 to 1, cut off at both ends; NaN stays. If all numbers are the same, they are 0.5."""
        if not self.high > self.low:
            return np.where(np.isnan(plane), plane, np.float32(0.5))
        with np.errstate(over="ignore", invalid="ignore"):
            part: NDArray[np.float32] = (plane - np.float32(self.low)) / np.float32(self.high - self.low)
            return np.clip(part, 0, 1)

    def __str__(self) -> str:
        return " to ".join(f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.0f}" for number in self)


def has_window(field: Field) -> bool:
    """Return whether the field says which numbers are black and white, so that none have to be found in the row."""
    return field.kind == PICTURE and field.range is not None


def window_of(field: Field, plane: NDArray[Any]) -> ShownPart:
    """Return the range of a picture, else percentiles of the numbers of a plane that are finite and have data."""
    if has_window(field) and field.range is not None:
        return ShownPart(*field.range)
    flat = plane.reshape(-1)
    taken = flat[:: max(1, len(flat) // MOST_READ) | 1].astype(np.float64)
    if field.kind != PICTURE or field.no_data:
        taken = taken[taken != field.fill_number]
    taken = taken[np.isfinite(taken)]
    return ShownPart(*np.percentile(taken, PERCENTILES).tolist()) if len(taken) else ShownPart(0.0, 0.0)
