"""A field of volumes: each slice is decoded and stored as a picture of its kind."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from numpy.typing import NDArray

from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.recipe.source import Given, Slices
from packer.shards.kinds import Decoded, FieldKind, Stored
from readers.contract.fields import Field
from readers.contract.kinds import PICTURE
from readers.contract.slices import slices_of
from readers.contract.statistics import ClassStatistics, FieldStatistics
from readers.contract.tiles import Origin, Size


class VolumeKind:
    """Volumes whose slices are stored by the kind of their field. One slice at a time is decoded."""

    def __init__(self, field: Field, kind: FieldKind) -> None:
        self._field, self._kind = field, kind

    def decode(self, data: Given) -> Decoded:
        """Return slices as they are: they are decoded when they are stored. One of a sample is decoded now."""
        return Decoded(data, data.size) if isinstance(data, Slices) else self._kind.decode(data)

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> Stored:
        """Write the slices to `out`. The hash is made of the numbers that are stored."""
        counts: list[FieldStatistics] = []
        for number, target in enumerate(slices_of(self._field, out)):
            with naming(decoded.pixels.name), naming(f"slice {number}"):
                found = self._kind.decode(decoded.pixels.slice(number))
                if found.size != decoded.size[1:]:
                    raise BadPair(f"is {found.size}, and its header has {decoded.size[1:]}; build again")
                counts.append(self._kind.store(found, None, target).statistics)
        statistics = of_one_row(reduce(add, counts), decoded.size)
        return Stored(statistics, out if self._field.kind == PICTURE else None)


def of_one_row(slices: FieldStatistics, size: Size) -> FieldStatistics:
    """Return the statistics of a volume, given the sum of those of its slices: a class occurs in one row."""
    if not isinstance(slices, ClassStatistics):
        return slices
    rows = tuple([min(1, count) for count in slices.rows])
    return replace(slices, rows=rows, areas=tuple([math.prod(size) * count for count in rows]))
