"""Count the pixels of each class in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.bits import unpack_bits
from readers.contract.fields import Field
from readers.contract.kinds import BITS, INDEX


def class_pixels(field: Field, pixels: NDArray[Any]) -> list[int]:
    """Return the pixels of each class in a row of a field with classes."""
    classes = len(field.classes or ())
    if field.form == INDEX:
        counts: list[int] = np.bincount(pixels.reshape(-1), minlength=classes)[:classes].tolist()
        return counts
    planes = unpack_bits(pixels, classes) if field.form == BITS else pixels
    return [int(np.count_nonzero(plane)) for plane in planes]
