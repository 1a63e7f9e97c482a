"""The lines of YOLO's files: a class and coordinates as numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.annotations.json_values import MOST_BYTES, MOST_POINTS
from packer.errors import BadPair

BOX = 5
"""The numbers of a line that has a box: class, centre, width and height."""
TOLERANCE = 0.01
"""The share of the size by which the box of an outline may be outside. Ultralytics allows as much."""
MOST_LINE = 16 << 20
"""The most bytes of a line."""


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file that are not empty."""
    if len(data) > MOST_BYTES:
        raise BadPair(f"is larger than {MOST_BYTES >> 20} MiB, too large for the annotations of one picture")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadPair("is not text in UTF-8") from None
    return [line for line in text.splitlines() if line.strip()]


def numbers_of(line: str) -> NDArray[np.float64]:
    """Return the numbers of a line."""
    fields = line.split(maxsplit=2 * MOST_POINTS + 1) if len(line) <= MOST_LINE else ()
    if len(fields) > 2 * MOST_POINTS + 1 or len(line) > MOST_LINE:
        raise BadPair(f"has more than {MOST_POINTS} points")
    try:
        numbers = np.array(list(map(float, fields)), np.float64)
    except ValueError:
        raise BadPair(f"expected a class and coordinates, found {line[:40]!r}") from None
    if not np.isfinite(numbers).all():
        raise BadPair("has a number that is not finite")
    return numbers
