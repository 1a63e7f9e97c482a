"""`Blocks`: squares of a picture that belong to one split each, so that no pixel is in the tiles of two splits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.choices import TILE
from packer.pixels.resize import Geometry
from readers.contract.json_entry import Entry
from readers.contract.manifest import ALL, NAME
from readers.contract.tiles import Size

NEITHER = -1
"""The number of the split of a tile that touches blocks of two splits."""
KEPT = 64
"""The pictures whose tiles stay in memory."""
_SHARE = re.compile(r"([0-9]{1,12})/([1-9][0-9]{0,11})")


@dataclass(frozen=True)
class Blocks:
    """The side of a block, in pixels of the picture, and the share of all blocks that each split gets on average.

    A tile belongs to a split if all blocks that it touches do, and also those within `margin` pixels around it.
    """

    side: int
    margin: int
    shares: tuple[tuple[str, Fraction], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(name for name, _ in self.shares)

    def have_room(self, geometry: Geometry) -> bool:
        """Return whether tiles are cut, and one with its margins is not larger than a block."""
        return geometry.fit == TILE and geometry.size is not None and self.side >= max(geometry.size) + 2 * self.margin

    def of_tiles(self, key: str, size: Size, geometry: Geometry) -> NDArray[np.int64]:
        """Return for each tile of a picture, in the order of their origins, the number of its split, or NEITHER."""
        return _of_tiles(self, key, size, geometry)

    def grid(self, key: str, size: Size) -> NDArray[np.int64]:
        """Return the number of the split of each block of a picture. A block depends on its key and corner alone."""
        name = unicodedata.normalize("NFC", key)
        tops, lefts = (range(0, side, self.side) for side in size)
        numbers = [self._number(f"{name}@{top}+{left}") for top in tops for left in lefts]
        return np.array(numbers, np.int64).reshape(len(tops), len(lefts))

    def touched(self, starts: Sequence[int], length: int, side: int) -> list[slice]:
        """Return the blocks on one side of a picture that tiles with these starts touch, with their margins."""
        first = [max(0, start - self.margin) // self.side for start in starts]
        last = [(min(side, start + length + self.margin) - 1) // self.side for start in starts]
        return [slice(begin, end + 1) for begin, end in zip(first, last, strict=True)]

    def _number(self, block: str) -> int:
        digest = blake2b(block.encode("utf-8", "surrogatepass"), digest_size=8, person=b"segpack block").digest()
        position = Fraction(int.from_bytes(digest, "big"), 1 << 64)
        return next(
            number for number, end in enumerate(accumulate(share for _, share in self.shares)) if position < end
        )

    def to_json(self) -> dict[str, Any]:
        shares = [f"{share.numerator}/{share.denominator}" for _, share in self.shares]
        return {"side": self.side, "margin": self.margin, "splits": list(self.names), "shares": shares}

    @classmethod
    def from_json(cls, entry: Entry) -> Blocks:
        names, matches = entry.texts("splits"), list(map(_SHARE.fullmatch, entry.texts("shares")))
        shares = [Fraction(int(match[1]), int(match[2])) for match in matches if match]
        if len(set(names)) != len(shares) or sum(shares) != 1 or not all(map(_is_name, names)):
            entry.problem("shares", "expected names of splits, a share for each, and 1 as the sum of the shares")
        side, margin = entry.whole("side", least=1), entry.whole("margin")
        entry.close()
        return cls(side, margin, tuple(zip(names, shares, strict=False)))


def _is_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None and name != ALL


@lru_cache(KEPT)
def _of_tiles(blocks: Blocks, key: str, size: Size, geometry: Geometry) -> NDArray[np.int64]:
    assert geometry.size is not None, "tiles have a size"
    grid, corners = blocks.grid(key, size), [origin or (0, 0) for origin in geometry.origins(size)]
    tops, lefts = (sorted({corner[axis] for corner in corners}) for axis in (0, 1))
    rows = blocks.touched(tops, geometry.size[0], size[0])
    columns = blocks.touched(lefts, geometry.size[1], size[1])
    least, most = (np.array([reduce(grid[part], axis=0) for part in rows]) for reduce in (np.min, np.max))
    least = np.stack([least[:, part].min(1) for part in columns], 1)
    most = np.stack([most[:, part].max(1) for part in columns], 1)
    return np.where(least == most, least, NEITHER).ravel()
