"""`IdCodec`: from the bytes of a file, or an array, to the number of the object that each pixel belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import header_of
from packer.decoding.header import FilePixels, Header, Picture
from packer.decoding.raw_pixels import coloured, read_stored, upright
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair
from packer.pixels.class_lookup import colour_codes
from packer.pixels.exact_numbers import check_gray, check_whole, opaque, refuse_beyond
from packer.pixels.number_rules import ADE20K, INDEX, PANOPTIC, IdRules

SMALL, LARGE = "<u2", "<u4"
"""The types that ids are stored in."""


def id_dtype(header: Header, rules: IdRules) -> str:
    """Return the smallest type for every id that a file with this header may have; of 64 bits those below 2^32."""
    if rules.codec == INDEX:
        return SMALL if header.depth <= 16 else LARGE
    return LARGE if rules.codec == PANOPTIC else SMALL


class IdCodec:
    """Reads the ids of one field. They are stored as `dtype`."""

    def __init__(self, rules: IdRules, dtype: str, max_pixels: int = MOST_PIXELS) -> None:
        self._codec = rules.codec
        self._dtype = np.dtype(dtype)
        self._max_pixels = max_pixels

    def check(self, header: Header) -> None:
        """Raise BadPair if a file with this header cannot hold ids."""
        check_whole(header, "id")
        if self._codec == INDEX:
            check_gray(
                header, "an id is the number of a gray pixel. Ids in red, green and blue need the codec panoptic"
            )
        elif header.colours != 3 or header.extra or header.dtype != "|u1":
            raise BadPair(f"has the type {header}; ids by the codec {self._codec} are in RGB with 8 bits")

    def read(self, data: Picture) -> NDArray[Any]:
        """Return upright (H,W) ids. With the codec index, the ids of a palette are its indices."""
        header = header_of(data, self._max_pixels)
        self.check(header)
        stored = opaque(read_stored(data, header))
        return self.fitted(upright(stored.numbers if self._codec == INDEX else self._of_colours(stored), header))

    def fitted(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return (H,W) ids in the stored type. Raise BadPair if one of them is not a number of it."""
        most = int(np.iinfo(self._dtype).max)
        if ids.dtype.kind == "i" or np.iinfo(ids.dtype).max > most:
            bits = 8 * self._dtype.itemsize
            refuse_beyond(ids, 0, most, f"ids are 0 to {most} if they are stored in {bits} bits")
        return ids.astype(self._dtype, copy=False)

    def _of_colours(self, stored: FilePixels) -> NDArray[Any]:
        colours = opaque(coloured(stored)).numbers
        return colours[..., 2] if self._codec == ADE20K else colour_codes(np.ascontiguousarray(colours))
