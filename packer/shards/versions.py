"""Compares the versions of this machine with the versions in a plan: other ones could make other bytes."""

from __future__ import annotations

from packer.errors import first_of
from packer.recipe.recipe import Recipe, tools_of
from packer.recipe.source import Source
from packer.shards.formats import writer
from readers.contract import VERSION


def version_refusal(recipe: Recipe, source: Source, package: str) -> str | None:
    """Return why this machine must not build shards of a recipe that was planned by this package; None if it may."""
    if package != VERSION:
        return f"has segpack {VERSION}, the plan is of {package}"
    here = tools_of(source, recipe.geometry, recipe.rules, writer(recipe.storage).tool())
    if here == recipe.tools:
        return None
    lacking = first_of([tool for tool in recipe.tools if tool not in here], 3)
    extra = first_of([tool for tool in here if tool not in recipe.tools], 3)
    return f"has {', '.join(extra) or 'less'}, the plan {', '.join(lacking) or 'less'}"
