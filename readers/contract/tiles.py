"""Tiles: their positions in a picture, and their keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from readers.contract.errors import RequestError

Size = tuple[int, ...]
"""Height and width, or depth, height and width of a volume."""
Origin = tuple[int, int]
"""The top row and the left column."""

_KEY = re.compile(r"(?P<key>.+)@(?P<top>\d+)\+(?P<left>\d+)of(?P<height>\d+)x(?P<width>\d+)", re.DOTALL)


@dataclass(frozen=True)
class Tile:
    """The content of a tile's key: the key of the picture, where in it the tile begins, and the picture's size."""

    picture: str
    origin: Origin
    size: Size

    @property
    def key(self) -> str:
        """`city/a@000512+001024of2048x4096`: the numbers are padded so that keys sort by position."""
        return window_key(self.picture, self.origin, self.size)

    @classmethod
    def of(cls, key: str) -> Tile:
        """Return the tile that a key names."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise RequestError(f"{key!r} is not the key of a tile, such as 'a@000512+001024of2048x4096'")
        numbers = [int(match[name]) for name in ("top", "left", "height", "width")]
        return cls(match["key"], (numbers[0], numbers[1]), (numbers[2], numbers[3]))


def window_key(picture: str, start: Sequence[int], size: Size) -> str:
    """Return the key of a part of a picture or volume of this size, which begins at `start`."""
    return f"{picture}@{'+'.join(f'{at:06d}' for at in start)}of{size_text(size)}"


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


def size_text(size: Size) -> str:
    """Return a size as options write it."""
    return "x".join(map(str, size))
