"""The kind `values`: a measured number for each pixel, or the fill where there was no measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.exact_numbers import as_bits
from packer.pixels.exact_sums import exact_sums
from packer.pixels.nearest_lines import store_nearest
from packer.pixels.number_rules import LINEAR, ValueRules
from packer.pixels.valid_mean import store_valid_mean
from packer.pixels.value_codec import ValueCodec
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels
from packer.shards.kinds import Decoded, StoredRow, one_file
from readers.contract.fields import Field
from readers.contract.statistics import ValueStatistics
from readers.contract.tiles import Origin


class ValuesKind:
    """Values as a recipe stores them."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        assert isinstance(rule.read, ValueRules)
        self._geometry, self._field = recipe.geometry, rule.field
        self._codec = ValueCodec(rule.read, rule.field.dtype, rule.field.fill, recipe.max_pixels)
        self._store = store_valid_mean if rule.read.interpolation == LINEAR else store_nearest

    def decode(self, data: Given) -> Decoded:
        """Return the values of a file, an array, or a row of a pack."""
        values = (
            self._codec.converted(data.pixels) if isinstance(data, PackedPixels) else self._codec.read(one_file(data))
        )
        return Decoded(values, (values.shape[0], values.shape[1]))

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        self._store(decoded.pixels, self._geometry.placement(decoded.size, origin), self._field.fill_number, out)
        return StoredRow(check(self._field, out))


def check(field: Field, values: NDArray[Any]) -> ValueStatistics:
    """Return the statistics of a stored row; raise BadPair if it has a number that is neither finite nor the fill."""
    measured = values[as_bits(values) != as_bits(np.array(field.fill_number, field.dtype))]
    if not np.isfinite(measured).all():
        raise BadPair(f"has numbers in its {field.name} that are not finite, and not the fill {field.fill}")
    total, squares = exact_sums(measured)
    return ValueStatistics(measured.size, values.size - measured.size, (total,), (squares,))


KIND = ValuesKind
