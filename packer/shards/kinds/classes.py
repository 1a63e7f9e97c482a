"""The kind `classes`: labels, one class or none for each pixel, stored as an index or as one plane for each class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.class_picture import from_indices
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import LabelRules
from packer.pixels.stored_label import store
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels
from packer.shards.kinds import Decoded, StoredRow, one_file
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT
from readers.contract.onehot import expand
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import Origin

PIECE = 1 << 20
"""The pixels that are counted together: numpy makes numbers of 64 bits of them first."""


class ClassesKind:
    """A label as a recipe stores it."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        classes = rule.field.classes
        assert classes is not None, "the kind has a table"
        self._geometry = recipe.geometry
        self._codec = _codec(classes, rule.label_rules, recipe.max_pixels)
        self._count = len(classes)
        self._index_dtype = np.dtype(classes.index_dtype)
        self._onehot = rule.field.form == ONEHOT

    def decode(self, data: Given) -> Decoded:
        """Return the numbers of a label and the class of each."""
        picture = (
            from_indices(data.pixels, self._count)
            if isinstance(data, PackedPixels)
            else self._codec.read(one_file(data))
        )
        return Decoded(picture, picture.shape)

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        index = np.empty(out.shape[1:], self._index_dtype) if self._onehot else out
        counts = store(decoded.pixels, self._geometry, origin, self._count, index)
        if self._onehot:
            expand(index, self._count, out=out)
        return StoredRow(_statistics(counts, index.size - sum(counts)))


def check(field: Field, label: NDArray[Any]) -> ClassStatistics:
    """Return the statistics of a stored label; raise BadPair if it has impossible numbers."""
    assert field.classes is not None
    counts = _planes(label) if field.form == ONEHOT else _index(label, field.classes)
    if counts is None:
        raise BadPair(f"has numbers in its {field.name} that are in none of {len(field.classes)} classes")
    return _statistics(*counts)


def _planes(label: NDArray[Any]) -> tuple[list[int], int] | None:
    """Return the pixels of each class, and those without one; None if a pixel is in two classes."""
    planes = label.reshape(len(label), -1)
    counts = np.zeros(len(planes), np.int64)
    for first in range(0, planes.shape[1], PIECE):
        piece = planes[:, first : first + PIECE]
        if piece.max() > 1 or piece.sum(axis=0, dtype=np.uint32).max() > 1:
            return None
        counts += piece.sum(axis=1, dtype=np.int64)
    return counts.tolist(), planes.shape[1] - int(counts.sum())


def _index(label: NDArray[Any], classes: ClassTable) -> tuple[list[int], int] | None:
    """Return the pixels of each class, and those without one; None if a number is not of a class."""
    numbers = label.reshape(-1)
    counts = np.zeros(classes.ignore_index + 1, np.int64)
    for first in range(0, numbers.size, PIECE):
        counts += np.bincount(numbers[first : first + PIECE], minlength=len(counts))
    if counts[len(classes) : classes.ignore_index].any():
        return None
    return counts[: len(classes)].tolist(), int(counts[classes.ignore_index])


def _statistics(counts: Sequence[int], ignored: int) -> ClassStatistics:
    area = sum(counts) + ignored
    rows = [1 if count else 0 for count in counts]
    return ClassStatistics(tuple(counts), tuple(rows), tuple([area * row for row in rows]), ignored)


@lru_cache(maxsize=4)
def _codec(classes: ClassTable, rules: LabelRules, max_pixels: int) -> LabelCodec:
    """Return the codec, kept from shard to shard: its tables take longer to fill than a picture to decode."""
    return LabelCodec(classes, rules, max_pixels)


KIND = ClassesKind
