"""The two forms of a multilabel: a plane of 0 and 1 for each class, and planes of bits. Bit c % 8 of plane c // 8."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Planes = NDArray[np.uint8]


def bit_planes(classes: int) -> int:
    """Return the number of planes of bits that this number of classes takes."""
    return -(-classes // 8)


def pack_bits(planes: Planes, out: Planes | None = None) -> Planes:
    """Convert (classes, …) planes of 0 and 1 to (bit_planes(classes), …); bits without a class are 0."""
    classes, *sides = planes.shape
    packed: Planes = np.empty((bit_planes(classes), *sides), np.uint8) if out is None else out
    packed[...] = 0
    for number in range(classes):
        packed[number // 8] |= planes[number] << np.uint8(number % 8)
    return packed


def unpack_bits(packed: Planes, classes: int, out: Planes | None = None) -> Planes:
    """Convert (bit_planes(classes), …) to (classes, …) planes of 0 and 1."""
    planes: Planes = np.empty((classes, *packed.shape[1:]), np.uint8) if out is None else out
    for number in range(classes):
        plane = planes[number]
        np.right_shift(packed[number // 8], np.uint8(number % 8), out=plane)
        plane &= 1
    return planes


def has_other_bits(packed: Planes, classes: int) -> bool:
    """Return whether a bit without a class is 1."""
    return bool(classes % 8 and (packed[-1] >> np.uint8(classes % 8)).any())
