"""The ids of segments in the colours of a PNG, as COCO panoptic has them: red + 256 green + 65536 blue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import check_exact, header_of
from packer.decoding.header import Header
from packer.decoding.raw_pixels import TRANSPARENT, coloured, read_stored
from packer.errors import BadPair
from readers.contract.tiles import Size


def stored_size(header: Header, size: Size | None) -> Size:
    """Return the size of a picture of ids before EXIF turns it: its picture's size, if the annotations have it."""
    check_exact(header, "id")
    if header.colours != 3 or header.extra or header.dtype != "|u1":
        raise BadPair(f"has the type {header}; ids of segments are in RGB with 8 bits")
    stored = header.stored_height, header.stored_width
    if size not in (None, stored):
        raise BadPair("is {}x{}, and its annotation is of a picture of {}x{} (height x width)".format(*stored, *size))
    return stored


def segment_ids(data: bytes, size: Size | None, max_pixels: int) -> NDArray[np.uint32]:
    """Return the (H,W) id of each pixel. Raise BadPair if the file has no ids, or is of another size."""
    header = header_of(data, max_pixels)
    stored_size(header, size)
    colours = coloured(read_stored(data, header))
    if colours.opacity is not None:
        raise BadPair(TRANSPARENT)
    ids = colours.numbers[..., 2].astype(np.uint32)
    for channel in (1, 0):
        ids <<= 8
        ids |= colours.numbers[..., channel]
    return ids
