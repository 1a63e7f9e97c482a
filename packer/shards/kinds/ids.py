"""The kind `ids`: the object that each pixel belongs to, 0 for none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.id_codec import IdCodec
from packer.pixels.nearest_lines import store_nearest
from packer.pixels.number_rules import IdRules
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels
from packer.shards.kinds import Decoded, StoredRow, one_file
from readers.contract.fields import Field
from readers.contract.statistics import IdStatistics
from readers.contract.tiles import Origin


class IdsKind:
    """Ids as a recipe stores them."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        assert isinstance(rule.read, IdRules)
        self._geometry, self._field = recipe.geometry, rule.field
        self._codec = IdCodec(rule.read, rule.field.dtype, recipe.max_pixels)

    def decode(self, data: Given) -> Decoded:
        """Return the ids of a file, an array, or a row of a pack."""
        ids = self._codec.fitted(data.pixels) if isinstance(data, PackedPixels) else self._codec.read(one_file(data))
        return Decoded(ids, (ids.shape[0], ids.shape[1]))

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        store_nearest(decoded.pixels, self._geometry.placement(decoded.size, origin), 0, out)
        return StoredRow(check(self._field, out))


def check(field: Field, ids: NDArray[Any]) -> IdStatistics:
    """Return the statistics of a stored row; every number is possible."""
    return IdStatistics(ids.size, ids.size - int(np.count_nonzero(ids)))


KIND = IdsKind
