"""The differences between two recipes as JSON. Light: numpy is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from readers.contract.fields import JPEG
from readers.contract.kinds import CLASSES

DERIVED = ("name", "shape", "fill", "optional")
"""Facts of a field that follow from others."""


def recipe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    """Return (key, before, now) for each difference between two recipes as JSON. A missing key counts as None.

    What differs in a field has a key such as `label.form`.
    """
    before, now = flat_recipe(before), flat_recipe(now)
    return tuple((key, before.get(key), now.get(key)) for key in {**before, **now} if before.get(key) != now.get(key))


def flat_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe with a key for each fact of each field. A recipe of another version stays unchanged."""
    rules = recipe.get("fields")
    if not isinstance(rules, list) or not all(map(_is_rule, rules)):
        return dict(recipe)
    flat = {key: value for key, value in recipe.items() if key != "fields"}
    for rule in rules:
        field = rule["field"]
        chosen = {key: value for key, value in field.items() if key not in DERIVED}
        if field.get("kind") == CLASSES:
            chosen.pop("dtype", None)
        if isinstance(jpeg := rule.get(JPEG), dict):
            chosen["encoding"] = f"{field.get('encoding')}:{'keep' if jpeg.get('keep') else jpeg.get('quality')}"
        facts = {**chosen, **rule["read"], "from": rule.get("from")}
        flat |= {f"{field.get('name')}.{key}": value for key, value in facts.items()}
    return flat


def _is_rule(rule: object) -> bool:
    return isinstance(rule, dict) and all(isinstance(rule.get(key), dict) for key in ("field", "read"))
