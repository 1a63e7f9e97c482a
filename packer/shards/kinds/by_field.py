"""The kind of each field of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.shards.kinds import FieldKind, classes, ids, multilabel, picture, values
from packer.shards.kinds.volume import VolumeKind
from readers.contract.fields import Field
from readers.contract.kinds import CLASSES, IDS, MULTILABEL, PICTURE, VALUES
from readers.contract.statistics import FieldStatistics

_KINDS: dict[str, Callable[[Recipe, FieldRule], FieldKind]] = {
    PICTURE: picture.PictureKind,
    CLASSES: classes.ClassesKind,
    IDS: ids.IdsKind,
    VALUES: values.ValuesKind,
    MULTILABEL: multilabel.MultilabelKind,
}
_CHECKS: dict[str, Callable[[Field, NDArray[Any]], FieldStatistics]] = {
    PICTURE: picture.check,
    CLASSES: classes.check,
    IDS: ids.check,
    VALUES: values.check,
    MULTILABEL: multilabel.check,
}


def kinds_of(recipe: Recipe, fields: Sequence[Field]) -> tuple[FieldKind, ...]:
    """Return how each of these fields of a recipe becomes stored rows."""
    rules = {rule.name: rule for rule in recipe.rules}
    kinds = [_KINDS[field.kind](recipe, rules[field.name]) for field in fields]
    return tuple(
        VolumeKind(field, kind) if field.is_volume else kind for field, kind in zip(fields, kinds, strict=True)
    )


def check_row(field: Field, pixels: NDArray[Any]) -> FieldStatistics:
    """Return the statistics of a stored row of a field; raise BadPair if it has impossible numbers."""
    return _CHECKS[field.kind](field, pixels)
