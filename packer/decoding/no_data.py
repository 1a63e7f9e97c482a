"""Find the pixels without data: those with the number that a file names for them, and those that are not a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

RULE = "no data 1"
"""The name of this rule in recipes."""


def without_data(numbers: NDArray[Any], mark: float | None) -> NDArray[np.bool_]:
    """Return which numbers mean no data: NaN, and `mark` as the type of the numbers rounds it."""
    if numbers.dtype.kind == "f":
        missing: NDArray[np.bool_] = np.isnan(numbers)
        if mark is not None:
            with np.errstate(over="ignore"):
                rounded = numbers.dtype.type(mark)
            if math.isinf(mark) or np.isfinite(rounded):
                missing |= numbers == rounded
        return missing
    if mark is None or not math.isfinite(mark) or mark != int(mark):
        return np.zeros(numbers.shape, np.bool_)
    limits, whole = np.iinfo(numbers.dtype), int(mark)
    if not limits.min <= whole <= limits.max:
        return np.zeros(numbers.shape, np.bool_)
    return np.asarray(numbers == numbers.dtype.type(whole), np.bool_)
