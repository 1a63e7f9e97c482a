"""`StripFile`: a picture whose lines are decoded in order, so that little of it is in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from packer.decoding.file_types import read_header
from packer.decoding.header import FilePixels, Header, Strip
from packer.decoding.jpeg import is_progressive
from packer.decoding.raw_pixels import check_whole, read_stored, upright
from packer.decoding.rules import MOST_PIXELS
from packer.decoding.strips.part_file import PartFile
from packer.decoding.strips.png import PngLines
from packer.decoding.strips.tiff import TiffLines
from packer.decoding.tiff.directory import read_directory
from readers.contract.tiles import Size


class _Lines(Protocol):
    whole_bytes: int

    def lines(self, top: int, bottom: int) -> FilePixels: ...


class StripFile:
    """The numbers are the same as from `decode`. Damage is refused when its lines are decoded.

    A file that cannot be decoded line by line is decoded at once with its first lines: JPEG, WebP and BMP, interlaced
    PNG, a TIFF whose blocks are huge, and pictures that EXIF turns.
    """

    def __init__(self, path: Path | str, max_pixels: int = MOST_PIXELS) -> None:
        self._data = PartFile(path)
        try:
            header = read_header(self._data.file, max_pixels)
            self._lines = _lines_of(self._data, header)
        except BaseException:
            self._data.close()
            raise
        self._header = replace(header, stored_height=header.size[0], stored_width=header.size[1], orientation=1)

    @property
    def header(self) -> Header:
        """The header of the picture, upright."""
        return self._header

    @property
    def size(self) -> Size:
        """The height and width of the upright picture."""
        return self._header.size

    @property
    def whole_bytes(self) -> int:
        """About the memory that the picture needs because it is decoded at once; 0 if it is decoded line by line."""
        return self._lines.whole_bytes

    def lines(self, top: int, bottom: int) -> Strip:
        """Return some lines, in order; some may be left out. A file that changed is refused."""
        stored = self._lines.lines(top, bottom)
        self._data.check_unchanged()
        return Strip(replace(self._header, stored_height=bottom - top), stored)

    def close(self) -> None:
        self._data.close()


class _WholeLines:
    """The lines of a picture that is decoded at once, when the first ones are asked for."""

    def __init__(self, data: PartFile, header: Header) -> None:
        check_whole(str(header), header.size)
        self._data, self._header = data, header
        self._stored: FilePixels | None = None
        numbers = header.stored_height * header.stored_width * header.channels
        pixels = numbers * np.dtype(header.dtype).itemsize
        self.whole_bytes = len(data) + pixels
        if header.kind != "JPEG" or header.orientation != 1:
            self.whole_bytes += pixels  # they are copied once
        if header.kind == "JPEG" and is_progressive(data.file):
            self.whole_bytes += 2 * numbers  # libjpeg keeps all coefficients, of 16 bits

    def lines(self, top: int, bottom: int) -> FilePixels:
        stored, lines = self._stored or self._decode(), slice(top, bottom)
        self._stored = stored if bottom < self._header.size[0] else None
        return FilePixels(stored.numbers[lines], None if stored.alpha is None else stored.alpha[lines], stored.palette)

    def _decode(self) -> FilePixels:
        header = self._header
        stored = read_stored(self._data[0 : len(self._data)], header)
        numbers, alpha = upright(stored.numbers, header), stored.alpha
        return FilePixels(numbers, None if alpha is None else upright(alpha, header), stored.palette)


def _lines_of(data: PartFile, header: Header) -> _Lines:
    """Return what decodes the lines of a file."""
    if header.orientation != 1:
        return _WholeLines(data, header)
    if header.kind == "PNG" and PngLines.fits(data):
        return PngLines(data, header)
    if header.kind == "TIFF":
        tiff = read_directory(data.file)
        if TiffLines.fits(tiff):
            return TiffLines(data, header, tiff)
    return _WholeLines(data, header)
