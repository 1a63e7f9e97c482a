"""The kind of each field of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from packer.recipe.recipe import Recipe
from packer.shards.kinds import FieldKind
from packer.shards.kinds.volume import VolumeKind
from readers.contract.fields import Field
from readers.contract.statistics import FieldStatistics


def kinds_of(recipe: Recipe, fields: Sequence[Field]) -> tuple[FieldKind, ...]:
    """Return how each of these fields of a recipe becomes stored rows."""
    rules = {rule.name: rule for rule in recipe.rules}
    kinds = [_module(field.kind).KIND(recipe, rules[field.name]) for field in fields]
    return tuple(
        VolumeKind(field, kind) if field.is_volume else kind for field, kind in zip(fields, kinds, strict=True)
    )


def check_row(field: Field, pixels: NDArray[Any]) -> FieldStatistics:
    """Return the statistics of a stored row of a field; raise BadPair if it has impossible numbers."""
    statistics: FieldStatistics = _module(field.kind).check(field, pixels)
    return statistics


def _module(kind: str) -> ModuleType:
    """Return the module of a kind, which has its name. It is imported now: most builds need two."""
    return import_module(f"packer.shards.kinds.{kind}")
