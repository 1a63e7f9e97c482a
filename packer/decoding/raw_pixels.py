"""The unchanged pixels of a file or an array, and the steps that every kind of field shares."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.decoding import arrays
from packer.decoding.file_types import kind_of
from packer.decoding.header import BandFiles, FilePixels, Header, Picture, Pixels, Strip
from packer.errors import BadPair
from readers.contract.tiles import Size

MOST_WHOLE = 1 << 30
"""The most pixels of a file that is decoded at once: OpenCV refuses more."""
IN_PARTS = (
    "a slide, a TIFF, or a PNG that is not interlaced, is packed in parts by --size native --encode image=tiles:256; "
    "convert others: vips tiffsave FILE OUT.tif --tile --compression deflate --bigtiff"
)
TRANSPARENT = "has transparent pixels, whose colour depends on the background; flatten it"


def read_stored(data: Picture, header: Header) -> FilePixels:
    """Decode a file, or take an array or lines that are decoded, whose header is known."""
    if isinstance(data, Strip):
        return data.stored
    assert not isinstance(data, BandFiles), "each of these files is decoded alone"
    if not isinstance(data, bytes):
        return arrays.stored(data)
    check_whole(str(header), (header.stored_height, header.stored_width))
    stored: FilePixels = kind_of(data[:16]).decode(data, header)
    if stored.numbers.shape[:2] != header.decoded_size:
        raise BadPair(f"decodes to {stored.numbers.shape[:2]}, which is not the size in its header")
    return stored


def check_whole(kind: str, size: Size) -> None:
    """Refuse a picture that is too large to be decoded at once."""
    height, width = size
    if height * width > MOST_WHOLE:
        raise BadPair(
            f"is a {kind} of {width}x{height} pixels, and at most {MOST_WHOLE} are decoded at once; {IN_PARTS}"
        )


def coloured(stored: FilePixels) -> FilePixels:
    """Replace the indices of a palette by its colours; refuse an index beyond the palette."""
    if stored.palette is None:
        return stored
    highest = int(stored.numbers.max())
    if highest >= len(stored.palette):
        raise BadPair(f"is damaged: it uses index {highest} of a palette with {len(stored.palette)} colours")
    colours = stored.palette.view(np.uint32)[:, 0].take(stored.numbers)  # four channels at once: four times as fast
    channels = colours.view(np.uint8).reshape(*stored.numbers.shape, 4)
    return FilePixels(cv2.cvtColor(channels, cv2.COLOR_RGBA2RGB), channels[..., 3])


def spread(numbers: Pixels, header: Header) -> Pixels:
    """Spread gray of less than 8 bits over 0..255."""
    return numbers * np.uint8(255 // (2**header.depth - 1)) if header.depth < 8 else numbers


def ranged(numbers: Pixels, low: float, high: float) -> NDArray[np.float32]:
    """Scale numbers so that `low` becomes 0 and `high` 1; clip those outside."""
    with np.errstate(all="ignore"):  # infinite numbers are clipped like others
        scaled = (numbers.astype(np.float32) - np.float32(low)) / np.float32(high - low)
    if np.isnan(scaled).any():
        raise BadPair("has pixels that are not numbers (NaN)")
    return np.clip(scaled, 0, 1, out=scaled)


def upright(pixels: Pixels, header: Header) -> Pixels:
    """Turn the pixels upright. They are in one piece, pixel by pixel, or plane by plane if they were and stay."""
    if header.orientation == 1 and pixels.T.swapaxes(-1, -2).flags.c_contiguous:
        return pixels
    if header.orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if header.orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if header.orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)
