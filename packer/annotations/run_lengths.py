"""Run lengths as COCO writes them: pixels outside, inside, outside …, column by column, as a list or as a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import Mask
from packer.errors import BadPair
from readers.contract.tiles import Size

Runs = NDArray[np.int64]
EMPTY = Mask(0, 0, np.zeros((0, 0), np.bool_))
MOST_DIGITS = 6
"""The most characters of a number in a text: 29 bits and the sign. pycocotools writes no longer ones."""


@dataclass(frozen=True)
class RunLengths:
    """The lengths of runs in a picture of this size. The first one is outside."""

    counts: Runs
    size: Size

    def paint(self, size: Size) -> Mask:
        if size != self.size:
            height, width = self.size
            raise BadPair(f"has run lengths for {width}x{height}, and the picture is {size[1]}x{size[0]}")
        return mask_of_edges(np.cumsum(self.counts), size[0])


def run_lengths(counts: object, size: object) -> RunLengths:
    """Return checked run lengths of a list or a text. Raise BadPair if they do not cover this size."""
    sides = size if isinstance(size, list) else []
    if len(sides) != 2 or not all(type(side) is int and 0 < side < 1 << 31 for side in sides):
        raise BadPair(f"has run lengths of the size {str(size)[:60]}; expected [height, width]")
    if isinstance(counts, str):
        numbers = _of_text(counts)
    elif isinstance(counts, list):
        numbers = _of_list(counts)
    else:
        raise BadPair("has run lengths that are neither a list nor a text")
    if len(numbers) and numbers.min() < 0:
        raise BadPair("has a run of negative length")
    total, (height, width) = int(numbers.sum()), sides
    if total != height * width:
        raise BadPair(f"has run lengths of {total} pixels in all, and {width}x{height} are {height * width}")
    return RunLengths(numbers, (height, width))


def mask_of_edges(edges: Runs, height: int) -> Mask:
    """Return the mask that begins at the first of these ascending edges, ends at the second, begins at the third …

    An edge is a place in the picture, whose pixels are counted column by column.
    """
    pairs: NDArray[Any] = edges[: len(edges) // 2 * 2].reshape(-1, 2)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    if not len(pairs):
        return EMPTY
    columns, rows = np.divmod(pairs - (0, 1), height)
    left, right = int(columns[0, 0]), int(columns[-1, 1]) + 1
    top, bottom = 0, height
    if (columns[:, 0] == columns[:, 1]).all():
        top, bottom = int(rows[:, 0].min()), int(rows[:, 1].max()) + 1
        pairs = (columns - left) * (bottom - top) + rows - top + (0, 1)
    else:
        pairs = pairs - left * height
    lengths = np.diff(pairs.reshape(-1), prepend=0, append=(right - left) * (bottom - top))
    inside = np.zeros(len(lengths), np.bool_)
    inside[1::2] = True
    return Mask(top, left, np.repeat(inside, lengths).reshape(right - left, bottom - top).T)


def _of_list(counts: Sequence[Any]) -> Runs:
    if not all(type(count) is int and -1 << 40 < count < 1 << 40 for count in counts):
        raise BadPair("has a run length that is not a whole number of pixels")
    return np.array(counts, np.int64)


def _of_text(text: str) -> Runs:
    """Unpack a text: 5 bits in a character, the lowest first, and the sixth if more follow; the last one has the sign.
    From the fourth on numbers are differences to the last but one."""
    try:
        digits = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) - 48
    except UnicodeEncodeError:
        digits = np.array([-1])
    if not len(digits) or digits.min() < 0 or digits.max() > 63:
        raise BadPair("has run lengths in a text with other characters than '0' to 'o'")
    ends = np.flatnonzero(digits < 32)
    if not len(ends) or ends[-1] != len(digits) - 1:
        raise BadPair("has run lengths in a text that ends within a number")
    sizes = np.diff(ends, prepend=-1)
    if sizes.max() > MOST_DIGITS:
        raise BadPair(f"has a run length of {sizes.max()} characters; {MOST_DIGITS} are enough for every picture")
    starts = ends - sizes + 1
    shifts = 5 * (np.arange(len(digits)) - np.repeat(starts, sizes))
    numbers = np.add.reduceat((digits & 31) << shifts, starts)
    numbers -= ((digits[ends] & 16) != 0).astype(np.int64) << 5 * sizes
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    return numbers
