"""Numbers of a field that no counts of rows describe, such as depth, objects or a further picture, from a fair draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as part
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.report.heat import POINTS
from readers.contract.fields import Field
from readers.contract.kinds import IDS, VALUES
from readers.formats.large_rows import is_large, reduced
from readers.pack import Pack

MOST_PIXELS = 1 << 25
"""The most pixels of the rows in which objects are counted: small ones would be lost between points."""
NUMBERED = 1 << 20
"""Larger ids are sorted, because a table of them would be too long."""


@dataclass
class FieldDraw:
    """A field in the rows of a draw that have it."""

    field: Field
    least: float = np.inf
    most: float = -np.inf
    means: list[float] = part(default_factory=list)
    """The mean of each row that has a number."""
    empty: list[float] = part(default_factory=list)
    """The share of the pixels of each row that have no value, or are in no object."""
    objects: list[int] = part(default_factory=list)
    """The objects of each row."""
    sizes: list[NDArray[np.int64]] = part(default_factory=list)
    """The pixels of each object of a row."""

    @property
    def rows(self) -> int:
        return len(self.empty)

    def add(self, pixels: NDArray[Any]) -> None:
        """Add a row."""
        if self.field.kind == IDS:
            self._add_objects(pixels)
            return
        numbers = _points(pixels).astype(np.float64)
        good = numbers[np.isfinite(numbers)]
        if self.field.kind == VALUES or self.field.no_data:
            good = good[good != self.field.fill_number]
        self.empty.append(1 - good.size / max(1, numbers.size))
        if good.size:
            self.means.append(float(good.mean()))
            self.least, self.most = min(self.least, float(good.min())), max(self.most, float(good.max()))

    def _add_objects(self, pixels: NDArray[Any]) -> None:
        flat = pixels.reshape(-1)
        if int(flat.max(initial=0)) < NUMBERED:
            counts = np.bincount(flat)
            counts[:1] = 0
            sizes = counts[counts > 0]
        else:
            sizes = np.unique(flat[flat != 0], return_counts=True)[1]
        self.objects.append(len(sizes))
        self.sizes.append(sizes)
        self.empty.append(1 - int(sizes.sum()) / max(1, flat.size))


def draw_field(pack: Pack, drawn: Field, rows: Sequence[int]) -> FieldDraw:
    """Look at a field in these rows: at some pixels of each, or at whole rows if it has objects."""
    field_draw, pixels = FieldDraw(drawn), 0
    for row in rows:
        number, inside = pack.table.locate(row)
        shard = pack.shard(number)
        if not shard.has(drawn.name):
            continue
        if drawn.kind == IDS and is_large(shard, drawn, inside):
            continue
        stored = reduced(shard, drawn, inside, (POINTS, POINTS))
        pixels += stored.size
        if drawn.kind == IDS and pixels > MOST_PIXELS and field_draw.rows:
            break
        field_draw.add(stored)
    return field_draw


def _points(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a grid of pixels of a row; a number that is a whole row is the only one."""
    if pixels.ndim < 2:
        return pixels.reshape(-1)
    down, across = (np.arange(min(POINTS, side)) * side // min(POINTS, side) for side in pixels.shape[-2:])
    return np.asarray(pixels[..., down[:, None], across])
