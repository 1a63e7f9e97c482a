"""Decode the bytes of a file, or an array, to upright pixels, or raise a BadPair that gives the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.decoding import arrays, jpeg, opencv
from packer.decoding.arrays import class_numbers
from packer.decoding.file_types import read_header
from packer.decoding.grid import other_place
from packer.decoding.header import BandFiles, FilePixels, Header, Picture, Pixels, Strip
from packer.decoding.raw_file import naming_number
from packer.decoding.raw_pixels import TRANSPARENT, coloured, ranged, read_stored, spread, upright
from packer.decoding.rules import MOST_PIXELS, ImageRules
from packer.errors import BadPair, counted
from readers.contract.tiles import size_text


@lru_cache(maxsize=1)
def decoder_identity() -> str:
    """Return the versions of the decoders: another libjpeg may round differently."""
    return f"{opencv.identity()}, {jpeg.identity()}"


def check_image(header: Header, rules: ImageRules) -> None:
    """Refuse an image that is not gray or RGB, and one whose numbers need a range and have none."""
    _check_channels(header, "an image")
    if header.dtype != "|u1" and rules.image_range is None:
        sign = "signed " if header.is_signed else ""
        raise BadPair(
            f"has {header.depth} {sign}bits per channel, not 8; "
            "give --image-range LOW,HIGH, the numbers that become 0 and 1"
        )


def check_exact(header: Header, noun: str, lossy: bool = False) -> None:
    """Refuse a file whose compression changes numbers, and one that programs read differently."""
    if header.is_lossy and not lossy:
        raise BadPair(f"is a {header.kind} with lossy compression, which changes {noun}s; use PNG")
    if header.white_is_zero:
        raise BadPair(
            f"is a {header.kind} in which white is zero: in {noun}s some programs read 0 as 0, others as white; "
            "save it with black as zero"
        )


def check_label(header: Header, lossy: bool = False) -> None:
    """Refuse a picture that cannot hold a label."""
    check_exact(header, "label", lossy)
    if header.is_float:
        raise BadPair("has floating-point numbers; labels must be integers or colours")
    _check_channels(header, "a label")
    if header.dtype != "|u1" and header.channels != 1:
        raise BadPair(f"has {header.depth} bits per colour channel; labels must have 8, or be gray")


def _check_channels(header: Header, name: str) -> None:
    if not (header.extra or header.band_names):
        return
    if name == "a label":
        raise BadPair(f"has {header.channels} bands; a label has one, or colours, so save one band alone")
    raise BadPair(
        f"has {header.channels} bands of {counted(header.depth, 'bit')}, which its header does not call gray or RGB; "
        "--bands all stores all of them, --bands 3,2,1 some, and --image-range LOW,HIGH says which numbers become 0 "
        "and 1"
    )


def check_same_size(
    image: str, image_size: tuple[int, ...], label: str, label_size: tuple[int, ...], noun: str = "label"
) -> None:
    """Refuse an image and a label, or another field, of different sizes. Scaling one would move its pixels."""
    if image_size != label_size:
        order = "depth x height x width" if len(image_size) == 3 else "height x width"
        raise BadPair(
            f"{image} is {size_text(image_size)}, its {noun} {label} is {size_text(label_size)} ({order}); "
            "they must have the same size"
        )


def compared(image: str, header: Header, label: str, other: Header, noun: str = "label") -> Header:
    """Return the header of a label, or of another field, which says if it is at another place than the image.

    Refuse one of another size.
    """
    check_same_size(image, header.size, label, other.size, noun)
    elsewhere = other_place(image, header.grid, label, other.grid, noun)
    return replace(other, elsewhere=elsewhere) if elsewhere else other


def elsewhere_in(headers: Iterable[Header]) -> str:
    """Return the words for the first of these files that is at another place than the image."""
    return next((header.elsewhere for header in headers if header.elsewhere), "")


def header_of(data: Picture, max_pixels: int = MOST_PIXELS) -> Header:
    """Return the header of a file with these bytes, of an array, of lines of a picture, or of the files of bands."""
    if isinstance(data, Strip):
        return data.header
    if isinstance(data, bytes):
        return read_header(BytesIO(data), max_pixels)
    if isinstance(data, BandFiles):
        from packer.decoding.band_files import join_headers  # most pictures are one file

        headers = []
        for number, file in enumerate(data.files):
            with naming_number(number):
                headers.append(header_of(file, max_pixels))
        return join_headers(data.names, headers, max_pixels)
    return arrays.header_of(data, max_pixels)


def decode_image(data: Picture, rules: ImageRules, reduction: int = 1) -> NDArray[np.uint8] | NDArray[np.float32]:
    """Return an image as upright (H,W,3) RGB: uint8, or float32 from 0 to 1 with a range. Gray has equal channels.

    The sides of a JPEG become `reduction` times smaller: 1, 2, 4 or 8.
    """
    header = header_of(data, rules.max_pixels)
    if header.kind == "JPEG":
        header = replace(header, reduction=reduction)
    check_image(header, rules)
    stored = coloured(read_stored(data, header))
    if stored.opacity is not None and rules.alpha == "refuse":
        raise BadPair(f"{TRANSPARENT}, or pack the unchanged colours with --alpha drop")
    pixels = stored.numbers
    if rules.image_range is not None:
        pixels = ranged(pixels, *rules.image_range)
    elif pixels.ndim == 2:
        pixels = spread(pixels, header)
    if pixels.ndim == 2:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB)
    return upright(pixels, header)


@dataclass(frozen=True)
class LabelFile:
    """A decoded label, whose pixels can be read as numbers or as colours."""

    header: Header
    stored: FilePixels

    def pixels(self, as_index: bool) -> Pixels:
        """Return upright (H,W) numbers or (H,W,3) RGB; (H,W,4) only if there are transparent pixels.

        A palette gives its indices if `as_index`, else its colours. Gray of less than 8 bits gives the number in the
        file if `as_index`, else the gray from 0 to 255.
        """
        stored = self.stored if as_index else coloured(self.stored)
        numbers, alpha = stored.numbers, stored.opacity
        if numbers.ndim == 2 and not as_index:
            numbers = spread(numbers, self.header)
        if alpha is None or (self.header.channels == 1 and numbers.ndim == 2):  # a gray that tRNS marks is a number
            return upright(numbers, self.header)
        colours = cv2.cvtColor(numbers, cv2.COLOR_GRAY2RGB) if numbers.ndim == 2 else numbers
        return upright(np.dstack([colours, alpha]), self.header)

    @property
    def upright_numbers(self) -> Pixels:
        """The stored numbers, upright: gray, the indices of a palette, or colours without their alpha."""
        return upright(self.stored.numbers, self.header)


def read_label(data: Picture, lossy: bool = False, max_pixels: int = MOST_PIXELS) -> LabelFile:
    """Decode a label."""
    header = header_of(data, max_pixels)
    check_label(header, lossy)
    stored = read_stored(data, header)
    numbers = class_numbers(stored.numbers)
    return LabelFile(header, stored if numbers is stored.numbers else replace(stored, numbers=numbers))


def decode_label(data: bytes, as_index: bool, lossy: bool = False, max_pixels: int = MOST_PIXELS) -> Pixels:
    """Return the pixels of a label file; see `LabelFile`."""
    return read_label(data, lossy, max_pixels).pixels(as_index)
