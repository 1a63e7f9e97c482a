"""`Piece`: a row of a source, or a tile of it, that becomes one row of the pack. `PieceTable`: many, made on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from packer.pixels.choices import TILE
from packer.pixels.resize import Geometry
from packer.recipe.blocks import Blocks
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from readers.contract.tiles import Origin, Size, Tile


class Piece(NamedTuple):
    """A row, or a tile of a row. With fit tile or native it has the size of the picture, and a tile has its top left
    corner. `is_bad` is true if the plan found by its headers that the row is bad.

    Pieces of the same row are decoded together.
    """

    ref: RowRef
    size: Size | None = None
    origin: Origin | None = None
    is_bad: bool = False

    @property
    def key(self) -> str:
        """The key of the stored row."""
        if self.origin is None or self.size is None:
            return self.ref.key
        return Tile(self.ref.key, self.origin, self.size).key

    def to_json(self) -> list[Any]:
        values = [self.ref.key, self.ref.parts, *(self.size or ()), *(self.origin or ())]
        return [*values, 0] if self.is_bad else values

    @classmethod
    def from_json(cls, split: str, values: list[Any]) -> Piece:
        ref = RowRef(split, str(values[0]), tuple(map(str, values[1])))
        numbers = [int(value) for value in values[2:]]
        if numbers == [0]:
            return cls(ref, is_bad=True)
        if len(numbers) == 4:
            return cls(ref, (numbers[0], numbers[1]), (numbers[2], numbers[3]))
        return cls(ref, tuple(numbers) or None)


class PieceTable(Sequence[Piece]):
    """The pieces of a range of rows. Each is made when it is asked for.

    `sizes` has the sides of every row of `refs`, all 0 if they are unknown. Such a row is one piece. With `blocks`, a
    row of a split that they are drawn for has only the tiles that belong to it.
    """

    def __init__(
        self,
        refs: RefTable,
        sizes: NDArray[np.uint32],
        geometry: Geometry,
        rows: range,
        blocks: Blocks | None = None,
    ) -> None:
        self._refs, self._sizes, self._geometry, self._first_row = refs, sizes, geometry, rows.start
        self._blocks = blocks
        self._origins: dict[Size | None, Sequence[Origin | None]] = {None: [None]}
        self._ends: NDArray[np.int64] | None = None
        """The end of each row's pieces, if a row may have several."""
        count = len(rows)
        if geometry.fit == TILE:
            self._ends = np.cumsum(np.fromiter(self._counts(rows), np.int64, count))
            count = int(self._ends[-1]) if count else 0
        self._pieces = range(count)

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, index: int) -> Piece: ...

    @overload
    def __getitem__(self, index: slice) -> PieceTable: ...

    def __getitem__(self, index: int | slice) -> Piece | PieceTable:
        if isinstance(index, slice):
            part = copy(self)
            part._pieces = self._pieces[index]
            return part
        number = self._pieces[index]
        return next(self._between(number, number + 1))

    def __iter__(self) -> Iterator[Piece]:
        return self._between(self._pieces.start, self._pieces.stop)

    @property
    def keys(self) -> Iterator[str]:
        if self._ends is not None:
            return (piece.key for piece in self)
        return self._refs.keys(*self._rows(self._pieces.start, self._pieces.stop))

    @property
    def text(self) -> str:
        """The lines of all pieces, as `text_of` makes them."""
        if self._ends is not None:
            return text_of(list(self))
        return self._refs.text(*self._rows(self._pieces.start, self._pieces.stop))

    @property
    def sizes(self) -> NDArray[np.uint32]:
        """The size of each picture, if no row has several pieces."""
        assert self._ends is None
        start, stop = self._rows(self._pieces.start, self._pieces.stop)
        return self._sizes[start:stop]

    @property
    def lines(self) -> tuple[bytes, NDArray[np.uint32], int]:
        """The lines of the rows of these pieces, the sizes of their pictures, and how many pieces of the first row are
        in the table before this one."""
        start, stop = self._rows(self._pieces.start, self._pieces.stop)
        before = 0 if self._ends is None or start == self._first_row else int(self._ends[start - self._first_row - 1])
        skipped = 0 if self._ends is None else self._pieces.start - before
        return self._refs.lines(start, stop), self._sizes[start:stop], skipped

    def _rows(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of the rows that these pieces belong to."""
        if self._ends is not None and start < stop:
            start, last = (int(row) for row in np.searchsorted(self._ends, (start, stop - 1), "right"))
            stop = last + 1
        return self._first_row + start, self._first_row + stop

    def _between(self, start: int, stop: int) -> Iterator[Piece]:
        first, last = self._rows(start, stop)
        for row, ref in enumerate(self._refs.between(first, last), first):
            size = self._size(row)
            if self._ends is None:
                yield Piece(ref, size, is_bad=not self._sizes[row][0])
                continue
            origins = self._tiles_of(ref, size)
            before = int(self._ends[row - self._first_row]) - len(origins)
            for origin in origins[max(0, start - before) : stop - before]:
                yield Piece(ref, size, origin, size is None)

    def _size(self, row: int) -> Size | None:
        if not self._geometry.depends_on_source:
            return None
        size = tuple(self._sizes[row].tolist())
        return size if size[0] else None

    def _counts(self, rows: range) -> Iterator[int]:
        """Yield the number of the pieces of each row."""
        if self._blocks is None:
            return (len(self._origins_of(self._size(row))) for row in rows)
        refs = self._refs.between(rows.start, rows.stop)
        return (len(self._tiles_of(ref, self._size(row))) for row, ref in zip(rows, refs, strict=True))

    def _tiles_of(self, ref: RowRef, size: Size | None) -> Sequence[Origin | None]:
        """Return the origins of the tiles of a row that belong to its split."""
        origins = self._origins_of(size)
        if self._blocks is None or size is None or ref.split not in self._blocks.names:
            return origins
        numbers = self._blocks.of_tiles(ref.key, size, self._geometry)
        return [origins[tile] for tile in np.flatnonzero(numbers == self._blocks.names.index(ref.split)).tolist()]

    def _origins_of(self, size: Size | None) -> Sequence[Origin | None]:
        if size is not None and size not in self._origins:
            self._origins[size] = self._geometry.origins(size)
        return self._origins[size]


def keys_of(pieces: Sequence[Piece]) -> Iterable[str]:
    """Return the key of each piece."""
    return pieces.keys if isinstance(pieces, PieceTable) else (piece.key for piece in pieces)


def text_of(pieces: Sequence[Piece]) -> str:
    """Return a line for each piece, with its key and its parts. None of them has a line break or a zero."""
    if isinstance(pieces, PieceTable):
        return pieces.text
    return "\n".join("\0".join((piece.key, *piece.ref.parts)) for piece in pieces)
