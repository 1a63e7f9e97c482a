"""Numbers that are stored unchanged: the steps that ids, values and masks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import check_exact
from packer.decoding.header import FilePixels, Header
from packer.errors import BadPair


def check_whole(header: Header, noun: str) -> None:
    """Refuse a file that cannot hold exact whole numbers."""
    check_exact(header, noun)
    if header.is_float:
        raise BadPair(f"has floating-point numbers; {noun}s must be whole numbers")


def check_gray(header: Header, hint: str) -> None:
    """Refuse a file of more than one number for each pixel. A palette and an alpha count as none."""
    if header.channels - header.has_alpha != 1:
        raise BadPair(f"has {header.channels} channels; {hint}")


def opaque(stored: FilePixels) -> FilePixels:
    """Refuse transparent pixels: the file does not say whether their number counts."""
    if stored.opacity is not None:
        raise BadPair("has transparent pixels, whose numbers may not count; save it without alpha")
    return stored


def position(pixels: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the row and the column of the first pixel that is true."""
    row, column = np.argwhere(pixels)[0].tolist()
    return row, column


def refuse_beyond(numbers: NDArray[Any], least: int, most: int, words: str) -> None:
    """Refuse (H,W) whole numbers below `least` or above `most`. The message names the number and its position."""
    for number in (int(numbers.min()), int(numbers.max())):
        if not least <= number <= most:
            row, column = position(numbers == number)
            raise BadPair(f"has the number {number} at row {row}, column {column}; {words}")


def as_bits(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are equal where the stored bits are: NaN has one form."""
    return numbers.view(f"<u{numbers.itemsize}")
