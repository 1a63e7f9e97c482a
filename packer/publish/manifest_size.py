"""Check before any work that the manifest will be small enough for readers."""

from __future__ import annotations

from collections.abc import Iterable

from packer.errors import SettingsError
from packer.recipe.recipe import Recipe
from readers.contract.manifest import MOST_BYTES, Manifest, Split
from readers.contract.parts import Part
from readers.contract.statistics import FieldStatistics, no_rows

_LARGE = 10**12 - 1
"""The room for each number: a count of pixels in a very large data set."""
_LARGEST_SUM = 10**190


def check_manifest_size(recipe: Recipe, splits: Iterable[str]) -> None:
    """Refuse classes whose names, values and counts would not fit in the manifest."""
    classes = sum(len(field.classes) for field in recipe.fields if field.classes is not None)
    statistics = {name: _large(nothing) for name, nothing in no_rows(recipe.fields).items()}
    parts = (Part(tuple(field.name for field in recipe.fields), _LARGE, _LARGE),)
    manifest = Manifest(
        generation=_LARGE,
        created="0000-00-00T00:00:00Z",
        storage=recipe.storage,
        fields=recipe.fields,
        splits=tuple(Split(name, _LARGE, _LARGE, _LARGE, parts, statistics) for name in sorted(set(splits))),
        bytes=_LARGE,
        table="0" * 64,
        recipe=recipe.to_json(),
    )
    size = len(manifest.to_text().encode())
    if size > MOST_BYTES:
        raise SettingsError(
            f"{classes} classes would need up to {size / 2**20:.0f} MiB in the manifest, which may have "
            f"{MOST_BYTES >> 20}; use fewer classes, or shorter names and lists of values"
        )


def _large(nothing: FieldStatistics) -> FieldStatistics:
    """Return statistics with the most digits; sums of floating-point numbers have more of them."""
    most = {"sums": _LARGEST_SUM, "squares": _LARGEST_SUM}
    large = {
        key: most.get(key, _LARGE) if isinstance(value, int) else (most.get(key, _LARGE),) * len(value)
        for key, value in vars(nothing).items()
    }
    return type(nothing)(**large)
