"""A field of volumes: each slice is decoded and stored as a picture of its kind."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from packer.decoding.raw_file import naming
from packer.errors import LostFile
from packer.recipe.source import Given, Slices
from packer.shards.kinds import Decoded, FieldKind, StoredRow
from packer.shards.one_row import of_one_row
from readers.contract.fields import Field
from readers.contract.kinds import PICTURE
from readers.contract.slices import slices_of
from readers.contract.statistics import FieldStatistics
from readers.contract.tiles import Origin


class VolumeKind:
    """Volumes whose slices are stored by the kind of their field. One slice at a time is decoded."""

    def __init__(self, field: Field, kind: FieldKind) -> None:
        self._field, self._kind = field, kind

    def decode(self, data: Given) -> Decoded:
        """Return slices unchanged: they are decoded when they are stored. One of a sample is decoded now."""
        return Decoded(data, data.size) if isinstance(data, Slices) else self._kind.decode(data)

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        """Write the slices to `out`. The hash is made of the numbers that are stored."""
        counts: list[FieldStatistics] = []
        for number, target in enumerate(slices_of(self._field, out)):
            with naming(f"slice {decoded.pixels.first + number}"):
                decoded_slice = self._kind.decode(decoded.pixels.slice(number))
                if decoded_slice.size != decoded.size[1:]:
                    raise LostFile(f"is {decoded_slice.size}, and its header has {decoded.size[1:]}; build again")
                counts.append(self._kind.store(decoded_slice, None, target).statistics)
        return StoredRow(of_one_row(counts, math.prod(decoded.size)), out if self._field.kind == PICTURE else None)
