"""`MultilabelCodec`: from a file for each class, or one file for all, to a bit for each class. Classes may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import header_of
from packer.decoding.header import FilePixels, Header, Picture
from packer.decoding.raw_file import naming
from packer.decoding.raw_pixels import coloured, read_stored, upright
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadFile, BadPair
from packer.pixels.class_lookup import colour_codes
from packer.pixels.exact_numbers import check_whole, opaque, position, refuse_beyond
from packer.pixels.number_rules import MultilabelRules
from readers.contract.bits import Planes, bit_planes
from readers.contract.classes import ClassTable

Mask = NDArray[np.bool_]


class MultilabelCodec:
    """Reads the overlapping classes of one field. Bit `c % 8` of plane `c // 8` is class c."""

    def __init__(self, rules: MultilabelRules, classes: ClassTable, max_pixels: int = MOST_PIXELS) -> None:
        self._one_file = rules.one_file
        self._names = [seg_class.name for seg_class in classes.classes]
        self._max_pixels = max_pixels

    def check(self, header: Header) -> None:
        """Raise BadPair if a file with this header cannot hold all classes, or one of them if each has a file."""
        check_whole(header, "label")
        if self._one_file:
            self._check_all(header)
        elif header.extra or (header.colours == 3 and header.dtype != "|u1"):
            raise BadPair(f"has the type {header}; the file of a class is gray, or has colours of 8 bits")

    def read(self, data: Picture | tuple[Picture, ...]) -> Planes:
        """Return upright planes of bits (⌈C/8⌉,H,W). `data` has a file for each class, which may be empty."""
        if self._one_file and not isinstance(data, tuple):
            return self._of_file(data)
        return self._of_files(data if isinstance(data, tuple) else (data,))

    def _check_all(self, header: Header) -> None:
        """Refuse a file of all classes that has another number of bands, or too few bits."""
        classes = len(self._names)
        if header.channels == 1:
            bits = header.depth - header.is_signed
            if bits < classes:
                raise BadPair(f"has {bits} bits for each pixel, and there are {classes} classes")
        elif header.channels != classes:
            raise BadPair(
                f"has {header.channels} channels, and there are {classes} classes; a file of overlapping classes has "
                "a channel for each, or one channel with a bit for each"
            )

    def _of_files(self, files: tuple[Picture, ...]) -> Planes:
        planes: Planes | None = None
        first = ""
        for number, (name, data) in enumerate(zip(self._names, files, strict=True)):
            if isinstance(data, bytes) and not data:
                continue
            try:
                mask = self._mask(data)
            except BadPair as bad:
                raise BadFile(number, f"class {name}: {bad}") from None
            if planes is None:
                first, planes = name, np.zeros((bit_planes(len(files)), *mask.shape), np.uint8)
            if mask.shape != planes.shape[1:]:
                (tall, wide), (height, width) = planes.shape[1:], mask.shape
                raise BadFile(
                    number,
                    f"class {name}: is {height}x{width}, the file of class {first} is {tall}x{wide} (height x width); "
                    "they must have the same size",
                )
            planes[number // 8] |= mask.astype(np.uint8) << np.uint8(number % 8)
        if planes is None:
            raise BadPair("has no file of any class, so its size is unknown")
        return planes

    def _of_file(self, data: Picture) -> Planes:
        header = header_of(data, self._max_pixels)
        self.check(header)
        stored = read_stored(data, header)
        count = bit_planes(len(self._names))
        if header.channels == 1:
            numbers = upright(opaque(stored).numbers, header)
            most = 2 ** len(self._names) - 1
            refuse_beyond(numbers, 0, most, f"the bits of {len(self._names)} classes are 0 to {most}")
            return np.stack([(numbers >> 8 * plane).astype(np.uint8) for plane in range(count)])  # the lowest 8 bits
        bands = upright(_bands(stored, header), header)
        planes = np.zeros((count, *bands.shape[:2]), np.uint8)
        for number, name in enumerate(self._names):
            with naming(f"band {number + 1}, class {name}"):
                planes[number // 8] |= _inside(bands[..., number]).astype(np.uint8) << np.uint8(number % 8)
        return planes

    def _mask(self, data: Picture) -> Mask:
        """Return which pixels of the file of one class are in it: those whose number, or colour, is not 0."""
        header = header_of(data, self._max_pixels)
        self.check(header)
        stored = opaque(read_stored(data, header))
        if stored.palette is None:
            return _inside(upright(stored.numbers, header))
        inside = _inside(upright(stored.numbers, header))
        colours = upright(opaque(coloured(stored)).numbers, header)
        differs = inside != (colour_codes(colours) != 0)
        if differs.any():
            row, column = position(differs)
            red, green, blue = colours[row, column].tolist()
            raise BadPair(
                f"can be read in two ways: at row {row}, column {column} the palette's index is "
                f"{upright(stored.numbers, header)[row, column]} and its colour #{red:02x}{green:02x}{blue:02x}; "
                "save it as gray, with 0 outside of the class"
            )
        return inside


def _bands(stored: FilePixels, header: Header) -> NDArray[Any]:
    """Return all bands (H,W,C). An alpha is a band like the others."""
    if not header.has_alpha:
        return opaque(stored).numbers
    assert stored.alpha is not None
    return np.dstack([stored.numbers, stored.alpha])


def _inside(numbers: NDArray[Any]) -> Mask:
    """Return which pixels (H,W), or colours (H,W,3), are not 0. Refuse more than one other number."""
    codes = colour_codes(numbers) if numbers.ndim == 3 else numbers
    inside: Mask = codes != 0
    usual = codes.max() or codes.min()
    others = inside & (codes != usual)
    if others.any():
        row, column = position(others)
        texts = [_shown(code, numbers.ndim == 3) for code in (int(codes[row, column]), int(usual))]
        raise BadPair(
            f"has {texts[0]} at row {row}, column {column}, and {texts[1]}; besides 0 the file of a class has one "
            "number, so it may be a picture or a label of another kind"
        )
    return inside


def _shown(code: int, is_colour: bool) -> str:
    return f"the colour #{code.to_bytes(3, 'little').hex()}" if is_colour else f"the number {code}"
