"""The run lengths of a brush of Label Studio: a stream of bits with the red, green, blue and alpha of all pixels.

It begins with the number of values (32 bits), the bits of a value less 1 (5), and four sizes of counts less 1 (4 each).
Then come runs: one bit that is 1 if all values of the run are equal, two bits that choose a size, a count less 1, and
the value, or as many values as the count says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, Mask
from packer.errors import BadPair
from readers.contract.tiles import Size

CHANNELS, ALPHA = 4, 3
VALUE_BITS = 8
_HEAD = 32 + 5 + 4 * 4


@dataclass(frozen=True)
class BrushCode:
    """The stream of a picture of this size."""

    data: bytes
    size: Size

    def paint(self, size: Size) -> Mask:
        if size != self.size:
            raise BadPair(f"has a brush for {self.size[0]}x{self.size[1]}, and the picture is {size[0]}x{size[1]}")
        inside = _alpha(self.data, size[0] * size[1]).reshape(size)
        rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
        if not len(rows):
            return NOTHING
        top, left = int(rows[0]), int(columns[0])
        return Mask(top, left, inside[top : rows[-1] + 1, left : columns[-1] + 1])


def _alpha(data: bytes, pixels: int) -> NDArray[np.bool_]:
    """Unpack the stream: which pixels have an alpha above 0."""
    if len(data) * 8 < _HEAD:
        raise BadPair("has a brush that is cut off")
    head = _Bits(data)
    count, bits = head.read(32), head.read(5) + 1
    if count != CHANNELS * pixels or bits != VALUE_BITS:
        raise BadPair(f"has a brush of {count} values of {bits} bits; expected {CHANNELS * pixels} of {VALUE_BITS}")
    sizes = [head.read(4) + 1 for _ in range(4)]
    values, done = np.zeros(count, np.bool_), 0
    while done < count:
        run = head.read(3)
        length = head.read(sizes[run & 3]) + 1
        if done + length > count:
            raise BadPair(f"has a brush whose runs are longer than its {count} values")
        values[done : done + length] = head.read(VALUE_BITS) if run & 4 else head.bytes(length)
        done += length
    return values[ALPHA::CHANNELS]


class _Bits:
    """Bits, read one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, count: int) -> int:
        """Return the next bits as a number."""
        first, end = self._at, self._at + count
        if end > 8 * len(self._data):
            raise BadPair("has a brush that is cut off")
        self._at = end
        number = int.from_bytes(self._data[first >> 3 : (end + 7) >> 3], "big")
        return (number >> (-end & 7)) & ((1 << count) - 1)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """Return the next bytes, which may begin within one of the stream."""
        first, end = self._at, self._at + 8 * count
        if end > 8 * len(self._data):
            raise BadPair("has a brush that is cut off")
        self._at = end
        window = np.frombuffer(self._data, np.uint8)[first >> 3 : (end + 7) >> 3]
        return np.packbits(np.unpackbits(window)[first & 7 :][: 8 * count])
