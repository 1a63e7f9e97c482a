"""`StripFile`: a picture whose lines are decoded in order, so that little of it is in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from packer.decoding.file_types import read_header
from packer.decoding.header import FileBytes, Header, Picture, Stored, Strip
from packer.decoding.raw_pixels import read_stored, upright
from packer.decoding.rules import MOST_PIXELS
from packer.decoding.strips.part_file import PartFile
from packer.decoding.strips.png import PngLines
from packer.decoding.strips.tiff import TiffLines
from packer.decoding.tiff.directory import read_directory
from readers.contract.tiles import Size


class _Lines(Protocol):
    def lines(self, top: int, bottom: int) -> Stored: ...


class StripFile:
    """The numbers are those of `decode`, and damage is refused like there, when the lines that have it are decoded.

    A file that cannot be decoded line by line is decoded at once: JPEG, WebP and BMP, interlaced PNG, a TIFF whose
    blocks are huge, and pictures that EXIF turns.
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

    def lines(self, top: int, bottom: int) -> Picture:
        """Return the next lines. They must be asked for in order. With the last ones a file that changed is refused."""
        stored = self._lines.lines(top, bottom)
        if bottom == self.size[0]:
            self._data.check_unchanged()
        return Strip(replace(self._header, stored_height=bottom - top), stored)

    def close(self) -> None:
        self._data.close()

    def __enter__(self) -> StripFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _WholeLines:
    """The lines of a picture that is decoded at once."""

    def __init__(self, data: FileBytes, header: Header) -> None:
        stored = read_stored(data[0 : len(data)], header)
        numbers, alpha = upright(stored.numbers, header), stored.alpha
        self._stored = Stored(numbers, None if alpha is None else upright(alpha, header), stored.palette)

    def lines(self, top: int, bottom: int) -> Stored:
        stored, lines = self._stored, slice(top, bottom)
        return Stored(stored.numbers[lines], None if stored.alpha is None else stored.alpha[lines], stored.palette)


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
