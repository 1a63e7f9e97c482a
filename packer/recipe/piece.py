"""`Piece`: a row of a source, or a tile of it, that becomes one row of the pack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from packer.pixels.choices import TILE
from packer.pixels.resize import Geometry
from packer.recipe.row_ref import RowRef
from readers.contract.tiles import Origin, Size, Tile


class Piece(NamedTuple):
    """A row; with fit tile or native, the size of its picture; for a tile, its top left corner.

    Pieces of the same row are decoded together.
    """

    ref: RowRef
    size: Size | None = None
    origin: Origin | None = None

    @property
    def key(self) -> str:
        """The key of the stored row."""
        if self.origin is None or self.size is None:
            return self.ref.key
        return Tile(self.ref.key, self.origin, self.size).key

    @property
    def texts(self) -> tuple[str, ...]:
        """The key and the parts of the row."""
        return self.key, *self.ref.parts

    def to_json(self) -> list[Any]:
        return [self.ref.key, self.ref.parts, *(self.size or ()), *(self.origin or ())]

    @classmethod
    def from_json(cls, split: str, values: list[Any]) -> Piece:
        ref = RowRef(split, str(values[0]), tuple(map(str, values[1])))
        numbers = [int(value) for value in values[2:]]
        size = (numbers[0], numbers[1]) if numbers else None
        return cls(ref, size, (numbers[2], numbers[3]) if len(numbers) == 4 else None)


def pieces(refs: Iterable[RowRef], sizes: Iterable[Size | None], geometry: Geometry) -> list[Piece]:
    """Return the pieces of rows whose pictures have these sizes. A row with bad headers (None) is one piece."""
    if not geometry.depends_on_source:
        return list(map(Piece, refs))
    return [piece for ref, size in zip(refs, sizes, strict=True) for piece in _pieces(ref, size, geometry)]


def _pieces(ref: RowRef, size: Size | None, geometry: Geometry) -> list[Piece]:
    if size is None:
        return [Piece(ref)]
    if geometry.fit != TILE:
        return [Piece(ref, size)]
    return [Piece(ref, size, origin) for origin in geometry.origins(size)]
