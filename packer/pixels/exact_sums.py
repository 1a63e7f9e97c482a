"""The exact sum of numbers and of their squares, whatever their type, as whole numbers.

Numbers of floating point are whole multiples of a unit: 2^-24 for 16 bits and 2^-149 for 32. Sums are in this unit, and
sums of squares in its square. A chunk of numbers is scaled so that the largest has 32 bits before the point. Those that
are then whole are summed as float64 in halves of 16 bits: with CHUNK numbers, no sum reaches 2^53, so none is rounded.
The others are much smaller. They are summed in the same way, with a scale of their own.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import mul
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.statistics import UNIT_BITS

CHUNK = 1 << 14
"""The numbers that are summed together: as many as stay in the cache, and fewer than 2^20."""
_HALF = float(1 << 16)
_MOST_COUNTED = 1 << 24
"""OpenCV counts in float32, which is exact up to this."""


def exact_sums(numbers: NDArray[Any]) -> tuple[int, int]:
    """Return the sum of the numbers and of their squares. All must be finite."""
    if numbers.dtype == np.uint8:
        return _bytes(numbers)
    flat = numbers.reshape(-1)
    unit = UNIT_BITS.get(flat.dtype.str)
    total = squares = 0
    for first in range(0, flat.size, CHUNK):
        chunk = flat[first : first + CHUNK].astype(np.float64)
        more = (int(chunk.sum()), int(chunk @ chunk)) if unit is None else _chunk(chunk, unit)
        total, squares = total + more[0], squares + more[1]
    return total, squares


def byte_sums(numbers: NDArray[np.uint8], table: NDArray[Any]) -> tuple[int, int]:
    """Return the sums of `table[numbers]` (H,W), many times as fast, because each of 256 numbers is counted."""
    lines = max(1, _MOST_COUNTED // numbers.shape[1])
    counts = np.zeros(256, np.int64)
    for first in range(0, len(numbers), lines):
        counts += (
            cv2.calcHist([numbers[first : first + lines]], [0], None, [256], [0, 256]).reshape(-1).astype(np.int64)
        )
    counted, (exact, squares) = counts.tolist(), _exact(table.tobytes(), table.dtype.str)
    return sum(map(mul, counted, exact)), sum(map(mul, counted, squares))


@lru_cache(maxsize=4)
def _exact(data: bytes, dtype: str) -> tuple[list[int], list[int]]:
    """Return the numbers of an array as whole multiples of the unit, and their squares."""
    exact = [exact_sums(number)[0] for number in np.frombuffer(data, dtype)[:, None]]
    return exact, [number * number for number in exact]


def _bytes(numbers: NDArray[Any]) -> tuple[int, int]:
    """Return both sums ten times as fast as numpy.

    OpenCV gives the sum of squares as the square of its root. For the most pixels allowed, the error is far below one.
    """
    return int(cv2.sumElems(numbers)[0]), round(cv2.norm(numbers, cv2.NORM_L2SQR))


def _chunk(numbers: NDArray[np.float64], unit: int) -> tuple[int, int]:
    total = squares = 0
    while numbers.size and (largest := max(numbers.max(), -numbers.min())):
        bits = 32 - math.frexp(largest)[1]
        scaled = numbers * math.ldexp(1, bits)
        is_whole = scaled == np.rint(scaled)
        rest = numbers[:0]
        if not is_whole.all():
            scaled, rest = scaled[is_whole], numbers[~is_whole]
        high = np.floor(scaled * (1 / _HALF))
        low = scaled - high * _HALF
        total += _shifted(int(scaled.sum()), unit - bits)
        whole = (int(high @ high) << 32) + (int(high @ low) << 17) + int(low @ low)
        squares += _shifted(whole, 2 * (unit - bits))
        numbers = rest
    return total, squares


def _shifted(number: int, bits: int) -> int:
    """Multiply by a power of two; a division leaves no rest."""
    return number << bits if bits >= 0 else number >> -bits
