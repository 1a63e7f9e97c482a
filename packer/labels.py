"""From label pixels to class indices, by the class table; what is in no class is named with its place."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pictures.decode import SEE_THROUGH, decode_label
from packer.pictures.rules import MOST_PIXELS
from readers.contract.classes import ClassTable

Index = NDArray[np.uint16]

IGNORE = 0xFFFF
"""Becomes 255 by itself where an index is stored in 8 bits."""
UNKNOWN = 0xFFFE


class LabelCodec:
    """Decodes labels by one class table: numbers by its values, colours by its colours."""

    def __init__(self, table: ClassTable, unknown_is_error: bool = True, max_pixels: int = MOST_PIXELS) -> None:
        self._unknown_is_error = unknown_is_error
        self._max_pixels = max_pixels
        self._has_values = any(one.values for one in table.classes)
        self._of_value = np.full(1 << 16, UNKNOWN, np.uint16)
        self._of_colour: Index | None = None
        colours = [(colour, number) for number, one in enumerate(table.classes) for colour in one.colours]
        colours += [(colour, IGNORE) for colour in table.ignored_colours]
        if colours:
            self._of_colour = np.full(1 << 24, UNKNOWN, np.uint16)
        for (red, green, blue), number in colours:
            assert self._of_colour is not None
            self._of_colour[red | green << 8 | blue << 16] = number
            if not self._has_values and red == green == blue:  # gray labels of a colour table: v means (v,v,v)
                self._of_value[red] = number
        for number, one in enumerate(table.classes):
            self._of_value[list(one.values)] = number
        self._of_value[list(table.ignored_values)] = IGNORE

    def decode(self, data: bytes) -> Index:
        """A label file's bytes as (H,W) class indices; IGNORE where the table says so."""
        pixels = decode_label(data, as_index=self._has_values, max_pixels=self._max_pixels)
        if pixels.ndim == 3 and pixels.shape[2] == 4:
            raise BadPair(SEE_THROUGH)
        if pixels.ndim == 2:
            index = self._of_value.take(pixels, mode="clip")
        elif self._of_colour is not None:
            index = self._of_colour.take(_codes(pixels), mode="clip")
        else:
            raise BadPair("has colours, but the class table has only values; give the classes' colours")
        self._judge(index, pixels)
        return index

    def _judge(self, index: Index, pixels: NDArray[Any]) -> None:
        """Name what is in no class, or turn it into what is ignored."""
        unknown = index == UNKNOWN
        if not unknown.any():
            return
        if self._unknown_is_error:
            raise BadPair(_describe(pixels, unknown))
        index[unknown] = IGNORE


def _codes(pixels: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """(H,W,3) -> (H,W) red | green << 8 | blue << 16, through a fourth byte that is then cleared."""
    padded = cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA)
    return np.asarray(padded.view("<u4")[..., 0] & 0xFFFFFF, np.uint32)


def _describe(pixels: NDArray[Any], unknown: NDArray[np.bool_]) -> str:
    """Which values or colours are in no class, how many pixels each, and where the first of each lies."""
    rows, columns = np.nonzero(unknown)
    numbers = pixels if pixels.ndim == 2 else _codes(pixels)
    strays, first, counts = np.unique(numbers[rows, columns], return_index=True, return_counts=True)
    order = np.lexsort((strays, -counts))
    named = [
        f"{_name(pixels[rows[first[one]], columns[first[one]]])}: {counts[one]} pixels, "
        f"first at row {rows[first[one]]}, column {columns[first[one]]}"
        for one in order[:5]
    ]
    more = [f"and {len(order) - 5} more"] if len(order) > 5 else []
    what = "value" if pixels.ndim == 2 else "colour"
    what += "s" if len(order) > 1 else ""
    return (
        f"has {what} of no class ({'; '.join([*named, *more])}); add to the class table, --ignore, or --unknown ignore"
    )


def _name(stray: NDArray[Any]) -> str:
    return str(stray) if stray.ndim == 0 else "#{:02x}{:02x}{:02x}".format(*stray.tolist())
