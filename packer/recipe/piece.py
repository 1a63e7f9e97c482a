"""`Piece`: a pair, or a tile of a pair, that becomes one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packer.pairs.pair import Pair
from packer.pixels.choices import TILE
from packer.pixels.resize import Geometry
from readers.contract.tiles import Origin, Size, Tile


class Piece(NamedTuple):
    """The files of a pair; with fit tile or native, the size of its picture; for a tile, its top left corner."""

    key: str
    image: str
    label: str
    source: Size | None = None
    origin: Origin | None = None

    @property
    def files(self) -> tuple[str, str]:
        """The image and the label. Pieces of the same files are decoded together."""
        return self.image, self.label

    def to_json(self) -> list[str | int]:
        return [self.key, self.image, self.label, *(self.source or ()), *(self.origin or ())]

    @classmethod
    def from_json(cls, values: list[str | int]) -> Piece:
        key, image, label = (str(value) for value in values[:3])
        numbers = [int(value) for value in values[3:]]
        source = (numbers[0], numbers[1]) if numbers else None
        return cls(key, image, label, source, (numbers[2], numbers[3]) if len(numbers) == 4 else None)


def pieces(pairs: Iterable[Pair], sizes: Iterable[Size | None], geometry: Geometry) -> list[Piece]:
    """Return the pieces of pairs whose pictures have these sizes. A pair with bad headers (None) is one piece."""
    if not geometry.depends_on_source:
        return [Piece(key, image, label) for _, key, image, label in pairs]
    return [piece for pair, size in zip(pairs, sizes, strict=True) for piece in _pieces(pair, size, geometry)]


def _pieces(pair: Pair, size: Size | None, geometry: Geometry) -> list[Piece]:
    if size is None:
        return [Piece(pair.key, pair.image, pair.label)]
    if geometry.fit != TILE:
        return [Piece(pair.key, pair.image, pair.label, size)]
    return [
        Piece(pair.key if origin is None else Tile(pair.key, origin, size).key, pair.image, pair.label, size, origin)
        for origin in geometry.origins(size)
    ]
