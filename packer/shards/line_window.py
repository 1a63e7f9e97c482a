"""`LineWindow`: the lines of a field for lines of tiles, which may overlap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from packer.decoding.header import BandFiles, FilePixels, Pixels, Strip
from packer.recipe.source import Given, Lines


class LineWindow:
    """Gives the lines between two others, each pair further down. Lines that were given are kept while they are needed,
    and lines that are not needed are left out."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._top = self._bottom = 0
        self._kept: Given | None = None

    def between(self, top: int, bottom: int) -> Given:
        """Return these lines as a picture."""
        parts = []
        if self._kept is not None and top < self._bottom:
            parts.append(_lines_of(self._kept, slice(top - self._top, bottom - self._top)))
        self._kept = None  # the next lines take their memory
        if max(top, self._bottom) < bottom:
            parts.append(self._lines.lines(max(top, self._bottom), bottom))
        self._kept, self._top, self._bottom = _joined(parts), top, max(bottom, self._bottom)
        return self._kept


def strips_of(lines: Given) -> tuple[Any, ...]:
    """Return the strips of a field, one for each of its files; none for a class without a file."""
    if isinstance(lines, BandFiles):
        return lines.files
    return lines if isinstance(lines, tuple) else (lines,)


def _with(lines: Given, strips: list[Any]) -> Given:
    """Return other strips of the files of a field."""
    if isinstance(lines, BandFiles):
        return BandFiles(lines.names, tuple(strips))
    return tuple(strips) if isinstance(lines, tuple) else strips[0]


def _lines_of(lines: Given, part: slice) -> Given:
    """Return some lines of each file."""
    return _with(lines, [_strip(strip, [_cut(strip.stored, part)]) if strip else b"" for strip in strips_of(lines)])


def _joined(parts: list[Given]) -> Given:
    """Return the lines of parts, the upper part first, as one picture."""
    if len(parts) == 1:
        return parts[0]
    files = zip(*map(strips_of, parts), strict=True)
    strips = [_strip(strips[0], [strip.stored for strip in strips]) if strips[0] else b"" for strips in files]
    return _with(parts[0], strips)


def _strip(like: Strip, stored: list[FilePixels]) -> Strip:
    """Return the lines of one file, the upper ones first."""
    alphas = [pixels.alpha for pixels in stored if pixels.alpha is not None]
    numbers = _below([pixels.numbers for pixels in stored])
    pixels = FilePixels(numbers, _below(alphas) if alphas else None, stored[0].palette)
    return Strip(replace(like.header, stored_height=len(numbers)), pixels)


def _below(parts: list[Pixels]) -> Pixels:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _cut(stored: FilePixels, part: slice) -> FilePixels:
    alpha = None if stored.alpha is None else stored.alpha[part]
    return FilePixels(stored.numbers[part], alpha, stored.palette)
