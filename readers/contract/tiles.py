"""Tiles: their positions in a picture, their keys, and stitching arrays of them into a picture again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError

Size = tuple[int, int]
"""Height and width."""
Origin = tuple[int, int]
"""The top row and the left column."""

_KEY = re.compile(r"(?P<key>.+)@(?P<top>\d+)\+(?P<left>\d+)of(?P<height>\d+)x(?P<width>\d+)", re.DOTALL)
MOST_PIXELS = 1 << 31
"""The limit for a stitched picture: a key is only a text, and may name any size."""


@dataclass(frozen=True)
class Tile:
    """The content of a tile's key: the key of the picture, where in it the tile begins, and the picture's size."""

    picture: str
    origin: Origin
    size: Size

    @property
    def key(self) -> str:
        """`city/a@000512+001024of2048x4096`: the numbers are padded so that keys sort by position."""
        return f"{self.picture}@{self.origin[0]:06d}+{self.origin[1]:06d}of{self.size[0]}x{self.size[1]}"

    @classmethod
    def of(cls, key: str) -> Tile:
        """Return the tile that a key names."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise RequestError(f"{key!r} is not the key of a tile, such as 'a@000512+001024of2048x4096'")
        numbers = [int(match[name]) for name in ("top", "left", "height", "width")]
        return cls(match["key"], (numbers[0], numbers[1]), (numbers[2], numbers[3]))


def picture_of(key: str) -> str:
    """Return the key of the picture to which a row belongs; a row that is a whole picture has the same key."""
    match = _KEY.fullmatch(key)
    return key if match is None else match["key"]


def tile_starts(source: int, tile: int, overlap: int, shifted: bool) -> list[int]:
    """Return where tiles begin on one side: every `tile - overlap` pixels until the side is covered."""
    starts = list(range(0, max(1, source - overlap), tile - overlap))
    if shifted and source >= tile:
        starts[-1] = source - tile
    return starts


def stitch(parts: Iterable[tuple[str, NDArray[Any]]], fill: float | None = None) -> NDArray[Any]:
    """Return the picture (…, H, W) made of (key, pixels) of all its tiles; where tiles overlap, the later one is used.

    It also works for the output of a model on tiles, as long as height and width come last. `fill`: the number of
    pixels that no tile covers, by default an error.
    """
    picture: NDArray[Any] | None = None
    first: Tile | None = None
    for key, pixels in parts:
        tile = Tile.of(key)
        if picture is None or first is None:
            first = tile
            if not 0 < tile.size[0] * tile.size[1] <= MOST_PIXELS:
                raise RequestError(f"{key!r}: names a picture of {tile.size[0]}x{tile.size[1]} pixels")
            picture = np.zeros((*pixels.shape[:-2], *tile.size), pixels.dtype)
            if fill:
                picture[...] = fill
            covered = np.zeros(tile.size, np.bool_)
        if (tile.picture, tile.size) != (first.picture, first.size):
            raise RequestError(f"{key!r} is a tile of another picture than {first.key!r}; stitch one picture at a time")
        height, width = (min(pixels.shape[axis - 2], tile.size[axis] - tile.origin[axis]) for axis in (0, 1))
        area = np.s_[tile.origin[0] : tile.origin[0] + height, tile.origin[1] : tile.origin[1] + width]
        picture[(..., *area)] = pixels[..., :height, :width]
        covered[area] = True
    if picture is None or first is None:
        raise RequestError("there are no tiles to stitch")
    if fill is None and not covered.all():
        missing = np.count_nonzero(~covered)
        raise RequestError(f"{first.picture!r}: tiles are missing, {missing} pixels are not covered; fill= sets them")
    return picture
