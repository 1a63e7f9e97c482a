"""The kind `multilabel`: classes that may overlap, as a plane of 0 and 1 or as a bit for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.multilabel_codec import MultilabelCodec
from packer.pixels.nearest_lines import store_nearest
from packer.pixels.number_rules import MultilabelRules
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels, Slices
from packer.shards.kinds import Decoded, StoredRow
from readers.contract.bits import Planes, bit_planes, has_other_bits, pack_bits, unpack_bits
from readers.contract.fields import Field
from readers.contract.kinds import BITS
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import Origin


class MultilabelKind:
    """Overlapping classes as a recipe stores them. They are decoded and scaled as bits: an eighth of the memory."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        assert isinstance(rule.read, MultilabelRules)
        assert rule.field.classes is not None
        self._geometry, self._field = recipe.geometry, rule.field
        self._count = len(rule.field.classes)
        self._codec = MultilabelCodec(rule.read, rule.field.classes, recipe.max_pixels)

    def decode(self, data: Given) -> Decoded:
        """Return the classes of a row's files, of an array, or of a row of a pack, as bits."""
        assert not isinstance(data, Slices), "the kind of volumes takes them apart"
        planes = self._packed(data.pixels) if isinstance(data, PackedPixels) else self._codec.read(data)
        return Decoded(planes, (planes.shape[1], planes.shape[2]))

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        placement = self._geometry.placement(decoded.size, origin)
        if self._field.form == BITS:
            store_nearest(decoded.pixels, placement, 0, out)
        else:
            packed = np.empty((len(decoded.pixels), *out.shape[1:]), np.uint8)
            store_nearest(decoded.pixels, placement, 0, packed)
            unpack_bits(packed, self._count, out=out)
        return StoredRow(check(self._field, out))

    def _packed(self, planes: Planes) -> Planes:
        """Return a row of a pack, planes or bits, as bits. The two forms of a single class are the same."""
        is_packed = len(planes) == bit_planes(self._count)
        if has_other_bits(planes, self._count) if is_packed else planes.max() > 1:
            raise BadPair(f"has numbers in its {self._field.name} that are in none of {self._count} classes")
        return planes if is_packed else pack_bits(planes)


def check(field: Field, label: NDArray[Any]) -> ClassStatistics:
    """Return the statistics of a stored row; raise BadPair if it has bits or numbers without a class."""
    assert field.classes is not None
    count = len(field.classes)
    if has_other_bits(label, count) if field.form == BITS else label.max() > 1:
        raise BadPair(f"has numbers in its {field.name} that are in none of {count} classes")
    planes = unpack_bits(label, count) if field.form == BITS else label
    pixels: list[int] = [int(np.count_nonzero(plane)) for plane in planes]
    rows = [1 if number else 0 for number in pixels]
    area = planes[0].size
    return ClassStatistics(
        tuple(pixels), tuple(rows), tuple([area * row for row in rows]), area - int(np.count_nonzero(planes.any(0)))
    )


KIND = MultilabelKind
