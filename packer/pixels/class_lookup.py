"""`Lookup`: the class of each source value and colour, by the class table."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import first_of
from readers.contract.classes import ClassTable

Index = NDArray[np.uint16]
Numbers = NDArray[np.uint8] | NDArray[np.uint16]
Colours = NDArray[np.uint8]

IGNORE = 0xFFFF
"""The index of ignored pixels. Cast to 8 bits, it becomes 255."""
UNKNOWN = 0xFFFE
"""The index of values and colours that are not in the class table."""


class Lookup:
    """Tables with the class of every source value and colour. Filling them takes longer than looking up a picture."""

    def __init__(self, table: ClassTable) -> None:
        values = [(value, number) for number, seg_class in enumerate(table.classes) for value in seg_class.values]
        colours = [(colour, number) for number, seg_class in enumerate(table.classes) for colour in seg_class.colours]
        self.has_values, self.has_colours = bool(values), bool(colours)
        values += [(value, IGNORE) for value in table.ignored_values]
        colours += [(colour, IGNORE) for colour in table.ignored_colours]
        self._of_value = np.full(1 << 16, UNKNOWN, np.uint16)
        for value, number in values:
            self._of_value[value] = number
        self._colours = colours
        self._solid = [(colour[:3], number) for colour, number in colours if len(colour) == 3 or colour[3] == 255]
        self._of_colour: Index | None = None
        if self._solid:
            self._of_colour = np.full(1 << 24, UNKNOWN, np.uint16)
        for (red, green, blue), number in self._solid:
            assert self._of_colour is not None
            self._of_colour[red | green << 8 | blue << 16] = number
        grays = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
        self._of_gray = np.where(self._of_value[:256] == IGNORE, np.uint16(IGNORE), self._of_solid(grays)[0])
        self._transparent = sorted(
            (red | green << 8 | blue << 16 | alpha << 24, number)
            for (red, green, blue, alpha), number in ((c, n) for c, n in colours if len(c) == 4 and c[3] < 255)
        )

    @property
    def has_transparent(self) -> bool:
        """True if a colour of the table has an alpha below 255."""
        return bool(self._transparent)

    def values(self, numbers: Numbers) -> Index:
        """Return the class indices of (H,W) source values, with IGNORE or UNKNOWN."""
        if numbers.dtype == np.uint8 and numbers.ndim == 2:
            return np.asarray(cv2.LUT(numbers, self._of_value[:256]), np.uint16)  # a third of the time of `take`
        return self._of_value.take(numbers, mode="clip")

    def colours(self, pixels: Colours) -> Index:
        """Return the class indices of (H,W,3) or (H,W,4) colours, with IGNORE or UNKNOWN. Gray v is (v,v,v)."""
        if pixels.ndim == 2:
            return self._of_gray.take(pixels)
        index = self._of_solid(pixels)
        if pixels.shape[2] == 4:
            index[pixels[..., 3] < 255] = UNKNOWN
            codes = colour_codes(pixels)
            for code, number in self._transparent:
                index[codes == code] = number
        return index

    def _of_solid(self, pixels: Colours) -> Index:
        codes = colour_codes(pixels) & 0xFFFFFF
        if self._of_colour is None:
            return np.full(codes.shape, UNKNOWN, np.uint16)
        return self._of_colour.take(codes, mode="clip")

    def nearest(self, pixels: Colours, index: Index) -> None:
        """Give each unknown colour the class of the nearest colour in the table, by the distance in RGB and alpha."""
        unknown = index == UNKNOWN
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=2)
        codes = colour_codes(pixels)[unknown]
        if pixels.shape[2] == 3:
            codes = codes | np.uint32(255 << 24)
        strays, inverse = np.unique(codes, return_inverse=True)
        colours = np.array([(*colour, 255)[:4] for colour, _ in self._colours], np.int32)
        numbers = np.array([number for _, number in self._colours], np.uint16)
        nearest = np.empty(len(strays), np.uint16)
        for start in range(0, len(strays), 4096):
            part = strays[start : start + 4096, None] >> np.array([0, 8, 16, 24], np.uint32) & 0xFF
            distances = ((part.astype(np.int32)[:, None, :] - colours[None]) ** 2).sum(2)
            nearest[start : start + 4096] = numbers[distances.argmin(1)]
        index[unknown] = nearest[inverse]


def colour_codes(pixels: Colours) -> NDArray[np.uint32]:
    """Return red | green << 8 | blue << 16 | alpha << 24 of (H,W,3) or (H,W,4) pixels. Without alpha it is 0."""
    if pixels.shape[2] == 4:
        return np.ascontiguousarray(pixels).view("<u4")[..., 0]
    padded = cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA)  # the fourth byte is then cleared
    return np.asarray(padded.view("<u4")[..., 0] & 0xFFFFFF, np.uint32)


def describe_strays(pixels: NDArray[Any], unknown: NDArray[np.bool_]) -> str:
    """Describe the values or colours in no class: the number of pixels of each, and the position of the first."""
    rows, columns = np.nonzero(unknown)
    numbers = pixels if pixels.ndim == 2 else colour_codes(pixels)
    strays, first, counts = np.unique(numbers[rows, columns], return_index=True, return_counts=True)
    order = np.lexsort((strays, -counts))

    def show(stray: int) -> str:
        row, column = rows[first[stray]], columns[first[stray]]
        return f"{stray_name(pixels[row, column])}: {counts[stray]} pixels, first at row {row}, column {column}"

    noun = "value" if pixels.ndim == 2 else "colour"
    subject = f"{noun}s" if len(order) > 1 else f"a {noun}"
    return f"{subject} in no class ({'; '.join(first_of(order.tolist(), 5, show=show))})"


def stray_name(stray: NDArray[Any]) -> str:
    """Return a value as a number, a colour as #rrggbb."""
    parts = np.atleast_1d(stray).tolist()
    return str(parts[0]) if len(parts) == 1 else "#" + "".join(f"{part:02x}" for part in parts)
