"""`PackLines`: the lines, or the slices, of a row of a pack that is too large for memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.recipe.source import Given
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.contract.tiles import Size
from readers.formats.shard import Shard


class PackLines:
    """Reads the tiles that the lines touch.

    `convert` turns numbers, and the line of the first number, into what the kind of the field takes.
    """

    def __init__(self, shard: Shard, field: Field, row: int, convert: Callable[[NDArray[Any], int], Given]) -> None:
        self._shard, self._field, self._row, self._convert = shard, field, row, convert

    @property
    def size(self) -> Size:
        return self._shard.size(self._row)

    def lines(self, top: int, bottom: int) -> Given:
        part = slice(top, bottom), *(slice(0, side) for side in self.size[1:])
        try:
            numbers = self._shard.window(self._field, self._row, part)
        except DamagedError as error:
            raise BadPair(str(error)) from error
        return self._convert(numbers, top)

    def stored(self, field: Field) -> NDArray[np.uint8] | None:
        same = _form(self._field) == _form(field)
        return self._shard.stored(self._field, self._row) if same else None

    def close(self) -> None:
        pass


def _form(field: Field) -> tuple[object, ...]:
    return field.encoding, field.tile, field.planes, field.dtype
