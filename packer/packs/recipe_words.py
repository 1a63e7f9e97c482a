"""A recipe in words: what was done to a row on its way from the file to the pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packer.pixels.choices import FITS, NATIVE, TILE
from packer.pixels.resize import Geometry
from readers.contract.errors import RequestError
from readers.contract.tiles import Size, Tile


def placement_words(recipe: Mapping[str, Any], key: str, source: Size | None, stored: Size) -> Iterator[str]:
    """Yield what was done to the picture of a row, whose upright size was `source`, to bring it to its stored size."""
    fit, interpolation = str(recipe.get("fit")), str(recipe.get("interpolation"))
    if source is None:
        yield f"its size before is not known; fit {fit}"
        return
    if fit == NATIVE or source == stored:
        yield f"{_text(source)}, not scaled"
        return
    try:
        if fit not in FITS:
            raise ValueError(fit)
        placement = Geometry(stored, fit).placement(source, Tile.of(key).origin if fit == TILE else None)
    except (RequestError, ValueError):
        yield f"{_text(source)} became {_text(stored)}, fit {fit}"  # a recipe of another release
        return
    if placement.scaled == source:
        yield f"{_text(source)}, not scaled"
    else:
        yield f"{_text(source)} scaled to {_text(placement.scaled)} ({interpolation}; labels by the nearest pixel)"
    rows, columns = placement.taken
    if (rows.stop - rows.start, columns.stop - columns.start) != placement.scaled:
        yield f"of that the rows {rows.start} to {rows.stop} and the columns {columns.start} to {columns.stop}"
    if placement.is_filled:
        rows, columns = placement.region
        yield (
            f"placed at the rows {rows.start} to {rows.stop} and the columns {columns.start} to {columns.stop} of "
            f"{_text(stored)}; the rest is padding"
        )


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
