"""A piece: what becomes one row, which is a pair or a tile of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packer.pairs.pair import Pair
from packer.pixels.resize import Geometry
from readers.contract.tiles import Origin, Size, Tile


class Piece(NamedTuple):
    """A pair's files and, where the plan built on it, the pictures' size; for a tile, where it begins."""

    key: str
    image: str
    label: str
    source: Size | None = None
    origin: Origin | None = None

    @property
    def files(self) -> tuple[str, str]:
        """Pieces of the same files are decoded together."""
        return self.image, self.label

    def to_json(self) -> list[str | int]:
        return [self.key, self.image, self.label, *(self.source or ()), *(self.origin or ())]

    @classmethod
    def from_json(cls, values: list[str | int]) -> Piece:
        key, image, label = (str(value) for value in values[:3])
        numbers = [int(value) for value in values[3:]]
        source = (numbers[0], numbers[1]) if numbers else None
        return cls(key, image, label, source, (numbers[2], numbers[3]) if len(numbers) == 4 else None)


def pieces(pair: Pair, size: Size | None, geometry: Geometry) -> Iterator[Piece]:
    """The rows of a pair, by the size that its headers say; one whose headers are bad stays whole, to be rejected."""
    if size is None:
        yield Piece(pair.key, pair.image, pair.label)
        return
    source = size if geometry.depends_on_source else None
    for origin in geometry.origins(size):
        key = pair.key if origin is None else Tile(pair.key, origin, size).key
        yield Piece(key, pair.image, pair.label, source, origin)
