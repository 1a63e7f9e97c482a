"""The lines of a level of a slide, which openslide reads in parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.decoding.header import FilePixels, Picture, Strip
from packer.decoding.rules import MOST_PIXELS
from packer.decoding.slide import downsample_of, levels_of, library, open_slide, slide_header, unreadable
from packer.decoding.strips.part_file import PartFile
from readers.contract.tiles import Size

BAND, MOST_TILE = 256, 1024
"""The lines that are read together, if the slide has no tiles, or higher ones than MOST_TILE."""
MOST_BAND = 1 << 28
"""The most bytes of these lines, as openslide gives them."""
WHOLE = 1 << 26
"""The most pixels of a level that is read at once, unless its lines are exactly lines of level 0."""
HALF = 128
"""A pixel of less opacity was not scanned."""
_COLOUR = re.compile(r"#?([0-9A-Fa-f]{6})")
_WHITE = "FFFFFF"


class SlideFile:
    """Gives lines as `StripFile` does. Pixels that were not scanned have the slide's background colour, else white.

    openslide finds a part of a level by a pixel of level 0. Between two of these it blends lines. So which parts are
    read depends on the slide alone, and the numbers do not depend on which lines are asked for.
    """

    def __init__(self, paths: Sequence[Path], level: int = 0, max_pixels: int = MOST_PIXELS) -> None:
        """Open a slide. Its own file comes first, then those that belong to it."""
        with ExitStack() as exits:
            self._files = [exits.enter_context(closing(PartFile(path))) for path in paths]
            self._slide = exits.enter_context(closing(open_slide(paths[0])))
            self._level = level
            self._header = slide_header(levels_of(self._slide), level, max_pixels)
            self._downsample = downsample_of(self._slide, level)
            self._colour = _background(self._slide.properties)
            self._step = self._band_lines()
            self._band: tuple[int, NDArray[np.uint8]] | None = None
            self._exits = exits.pop_all()

    @property
    def size(self) -> Size:
        """The height and width of the level."""
        return self._header.size

    def lines(self, top: int, bottom: int) -> Picture:
        """Return some lines. A file that changed is refused."""
        numbers = np.empty((bottom - top, self.size[1], 3), np.uint8)
        for first in range(top // self._step * self._step, bottom, self._step):
            band = self._lines_from(first)
            start, stop = max(first, top), min(first + len(band), bottom)
            numbers[start - top : stop - top] = band[start - first : stop - first]
        for file in self._files:
            file.check_unchanged()
        return Strip(replace(self._header, stored_height=bottom - top), FilePixels(numbers))

    def close(self) -> None:
        self._exits.close()

    def _band_lines(self) -> int:
        """Return how many lines are read together: the height of some lines of tiles, so that each is decoded once."""
        height, width = self.size
        if not self._downsample.is_integer() and height * width <= WHOLE:
            return height
        tile = str(self._slide.properties.get(f"openslide.level[{self._level}].tile-height", ""))
        lines = int(tile) if re.fullmatch("[0-9]{1,4}", tile) else 0
        lines = lines * max(1, BAND // lines) if 0 < lines <= MOST_TILE else BAND
        return max(1, min(lines, MOST_BAND // (4 * width)))

    def _lines_from(self, first: int) -> NDArray[np.uint8]:
        """Return the lines that are read together with this one. The last ones are kept."""
        if self._band is None or self._band[0] != first:
            self._band = None
            count = min(self._step, self.size[0] - first)
            position = 0, round(first * self._downsample)
            try:
                region = self._slide.read_region(position, self._level, (self.size[1], count))
            except library().OpenSlideError as error:
                raise unreadable(error) from error
            self._band = first, self._opaque(np.asarray(region))
        return self._band[1]

    def _opaque(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the colours of pixels with opacity."""
        colours = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGBA2RGB), np.uint8)
        if pixels[..., 3].min() < HALF:
            colours[pixels[..., 3] < HALF] = self._colour
        return colours


def _background(properties: Any) -> NDArray[np.uint8]:
    """Return the colour of what was not scanned."""
    match = _COLOUR.fullmatch(str(properties.get("openslide.background-color", "")))
    return np.frombuffer(bytes.fromhex(match[1] if match else _WHITE), np.uint8)
