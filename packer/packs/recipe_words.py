"""A recipe in words: what was done to all rows, or to one, on the way from the file to the pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packer.pixels.choices import CROP_OR_PAD, FITS, NATIVE, TILE
from packer.pixels.resize import Geometry
from readers.contract.errors import RequestError
from readers.contract.tiles import Size, Tile, size_text

FIT_WORDS = {
    "stretch": "stretched to the stored size",
    "letterbox": "scaled until all of it fits, the rest is padding",
    CROP_OR_PAD: "not scaled; cut or padded around the middle",
    "shorter-side": "scaled until the size is filled, the rest is cut off",
    "tile": "cut into tiles",
    "native": "not scaled; each has its own size",
}
INTERPOLATION_WORDS = {
    "area": "images by the mean of the pixels, labels by the nearest pixel",
    "linear": "images by two neighbours on each side, labels by the nearest pixel",
    "cubic": "images by the mean of the pixels, cubic where they grow; labels by the nearest pixel",
    "nearest": "images and labels by the nearest pixel",
}
_IN_OTHER_LINES = ("tools", "overlap", "edge", "size")


def recipe_words(recipe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was done to all rows: an option, and what it means. Options of another release keep their names.

    The versions of libraries are left out.
    """
    fit, scaling = str(recipe.get("fit")), str(recipe.get("interpolation"))
    if isinstance(recipe.get("size"), list) and recipe["size"]:
        yield "stored size", "x".join(map(str, recipe["size"]))
    for key, value in recipe.items():
        if key == "fit":
            tiles = f"; {recipe.get('overlap')} pixels overlap, edges: {recipe.get('edge')}" if fit == TILE else ""
            yield "pictures of another size", FIT_WORDS.get(fit, fit) + tiles
        elif key == "interpolation":
            if fit not in (CROP_OR_PAD, TILE, NATIVE) or "resolution" in recipe:
                yield "scaled", INTERPOLATION_WORDS.get(scaling, scaling)
        elif key == "resolution":
            yield "pixels of maps", f"brought to the side {value}, in the units of their coordinates"
        elif key == "shard_bytes" and isinstance(value, int):
            yield "shards", f"of about {value:,} bytes"
        elif key == "tools" and isinstance(value, list):
            yield from (("annotations", _painting(tool)) for tool in map(str, value) if ", paint " in tool)
        elif key == "fields" and isinstance(value, list):
            yield from map(_field_words, value)
        elif key == "blocks" and isinstance(value, dict):
            yield "splits", f"of tiles, by blocks of {value.get('side')} pixels with a margin of {value.get('margin')}"
        elif key not in _IN_OTHER_LINES:
            yield key, str(value)


def _scaled_before(recipe: Mapping[str, Any]) -> list[str]:
    """Return how pictures of maps, and volumes, were scaled before they were fitted to a size."""
    if "resolution" in recipe:
        side = str(recipe["resolution"]).removesuffix(".0")
        return [f"scaled to pixels of {side}, in the units of its coordinates"]
    tools = recipe.get("tools")
    rules = [tool for tool in map(str, tools if isinstance(tools, list) else ()) if tool.startswith("volumes scaled")]
    return [f"scaled to voxels of {rule.split(', ', 2)[-1]}" for rule in rules]


def _field_words(rule: Any) -> tuple[str, str]:
    """Return the name of a field, and from where and how it was read."""
    table = _table(rule)
    words = [f"from {table['from']}"] if table.get("from") else []
    words += [
        f"{key.replace('_', ' ')} {value}" for key, value in _table(table.get("read")).items() if value is not None
    ]
    return str(_table(table.get("field")).get("name", "")), ", ".join(words) or "as the source has it"


def _painting(rules: str) -> str:
    """Return how objects of annotations were brought to the stored size. `rules` are the rules of `AnnotatedSource`."""
    return "painted at the size of the picture, and sampled as labels are"


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def placement_words(recipe: Mapping[str, Any], key: str, source: Size | None, stored: Size) -> Iterator[str]:
    """Yield what was done to the picture of a row, whose upright size was `source`, to bring it to its stored size."""
    fit, interpolation = str(recipe.get("fit")), str(recipe.get("interpolation"))
    if source is None:
        yield f"its size before is not known; fit {fit}"
        return
    before = _scaled_before(recipe)
    yield from before
    unscaled = f"{size_text(source)}, not scaled{' any more' * bool(before)}"
    if fit == NATIVE or source == stored:
        yield unscaled
        return
    try:
        if fit not in FITS:
            raise ValueError(fit)
        placement = Geometry(stored, fit).placement(source, Tile.of(key).origin if fit == TILE else None)
    except (RequestError, ValueError):
        yield f"{size_text(source)} became {size_text(stored)}, fit {fit}"  # a recipe of another release
        return
    if placement.scaled == source:
        yield unscaled
    else:
        sizes = f"{size_text(source)} scaled to {size_text(placement.scaled)}"
        yield f"{sizes} ({interpolation}; labels by the nearest pixel)"
    rows, columns = placement.taken
    if (rows.stop - rows.start, columns.stop - columns.start) != placement.scaled:
        yield f"of that the rows {rows.start} to {rows.stop} and the columns {columns.start} to {columns.stop}"
    if placement.is_filled:
        rows, columns = placement.region
        yield (
            f"placed at the rows {rows.start} to {rows.stop} and the columns {columns.start} to {columns.stop} of "
            f"{size_text(stored)}; the rest is padding"
        )
