"""Maps of the frame for each class and split: the share of a sample of rows that have it in each cell of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.bits import unpack_bits
from readers.contract.fields import Field
from readers.contract.kinds import BITS, INDEX, ONEHOT
from readers.contract.onehot import collapse
from readers.formats.large_rows import at_points, is_large, picture
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.row_sheet import fair_draw

CELLS = 32
POINTS = 96
"""The rows and the columns of pixels in which a label, or the middle slice of a volume, is read."""
MOST_ROWS = 512


@dataclass(frozen=True)
class HeatMaps:
    """For each class the share of pixels that it has in each cell (CELLS, CELLS), and the number of rows that count."""

    shares: NDArray[np.float32]
    rows: int


def heat_by_split(pack: Pack, label: Field, seed: int) -> dict[str, HeatMaps]:
    """Return the maps of each split whose rows have the label, over MOST_ROWS rows of all splits together."""
    maps_of = {}
    names = [split.name for split in pack.manifest.splits if split.rows]
    for name in names:
        rows = pack.rows_of(name)
        drawn = [rows[number] for number in fair_draw(len(rows), max(1, MOST_ROWS // len(names)), seed)]
        maps = heat_maps(pack, label, drawn)
        if maps is not None:
            maps_of[name] = maps
    return maps_of


def heat_maps(pack: Pack, label: Field, rows: Sequence[int]) -> HeatMaps | None:
    """Return the maps of a label over these rows; None if none of them has the label."""
    classes = len(label.classes or ())
    sums = np.zeros((classes + 1, CELLS * CELLS), np.int64)
    counted = 0
    for row in rows:
        number, inside = pack.table.locate(row)
        shard = pack.shard(number)
        if shard.has(label.name):
            _add(sums, label, _points(shard, label, inside), classes)
            counted += 1
    if not counted:
        return None
    points = POINTS * POINTS // (CELLS * CELLS) * counted
    return HeatMaps((sums[:classes] / points).astype(np.float32).reshape(classes, CELLS, CELLS), counted)


def _points(shard: Shard, label: Field, row: int) -> NDArray[Any]:
    """Return some pixels of a label, or of the middle slice of a volume."""
    down, across = (np.arange(POINTS) * side // POINTS for side in shard.size(row)[-2:])
    if is_large(shard, label, row):
        return at_points(shard, label, row, down, across)
    return np.asarray(picture(shard, label, row)[..., down[:, None], across])


def _add(sums: NDArray[np.int64], label: Field, points: NDArray[Any], classes: int) -> None:
    cells = (np.arange(POINTS) * CELLS // POINTS)[:, None] * CELLS + np.arange(POINTS) * CELLS // POINTS
    if label.form == ONEHOT and label.classes is not None:
        points = collapse(points, label.classes.index_dtype)
    if label.form in (INDEX, ONEHOT):
        codes = np.minimum(points, classes).astype(np.int64) * (CELLS * CELLS) + cells
        sums += np.bincount(codes.reshape(-1), minlength=sums.size).reshape(sums.shape)
        return
    planes = unpack_bits(points, classes) if label.form == BITS else points
    for number, plane in enumerate(planes):
        sums[number] += np.bincount(cells[plane > 0], minlength=CELLS * CELLS)
