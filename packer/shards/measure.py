"""Measure the bytes of rows in several encodings. Each row is decoded once, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.encode import encode
from packer.recipe.field_rule import FieldRule
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.shards.build_shard import PairMark
from packer.shards.rows import RowMaker, RowTarget
from readers.contract.fields import Field, Sides


class MeasuredRow(NamedTuple):
    """The bytes of a row, for each field of the shard, raw and as its recipe stores it, and by each of the other rules.

    Those by a rule are 0 if the row has no such field, or cannot be stored so. `bad` is why the row cannot be packed.
    """

    raw: tuple[int, ...] = ()
    fields: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    bad: str | None = None


def measure_rows(spec: ShardSpec, others: Sequence[FieldRule], source: Source, mark: PairMark) -> Iterator[MeasuredRow]:
    """Yield the sizes of the pieces of a shard. The other rules are the rules of its fields, with other encodings."""
    maker = RowMaker(spec.recipe, spec.fields, source)
    source.expect(piece.ref for piece in spec.pieces)
    for index, piece in enumerate(spec.pieces):
        memory = OneRow(spec.fields, spec.recipe.geometry.size or piece.size or (0,) * spec.recipe.sides)
        with mark(index):
            (row,) = maker.fill([RowTarget(piece, memory, 0)])
            yield MeasuredRow(bad=row.reject) if row.reject is not None else memory.sizes(others)


class OneRow:
    """The memory of one row. Its encoded bytes are counted and not kept."""

    def __init__(self, fields: Sequence[Field], size: Sides) -> None:
        self._arrays = {field.name: np.empty(field.row_shape(*size), field.dtype) for field in fields}
        self._stored = {name: array.nbytes for name, array in self._arrays.items()}

    def rows(self, index: int) -> list[NDArray[Any]]:
        return list(self._arrays.values())

    def put(self, index: int, field: Field, encoded: bytes | Path) -> None:
        assert isinstance(encoded, bytes), "without a scratch folder rows are built at once"
        self._stored[field.name] = len(encoded)

    def sizes(self, others: Sequence[FieldRule]) -> MeasuredRow:
        """Return the sizes of the row that was filled in."""
        raw = tuple(array.nbytes for array in self._arrays.values())
        return MeasuredRow(raw, tuple(self._stored.values()), tuple(map(self._size, others)))

    def _size(self, rule: FieldRule) -> int:
        with suppress(BadPair):
            if rule.name in self._arrays:
                return len(encode(rule.field, rule.jpeg, self._arrays[rule.name], b"").stored)
        return 0
