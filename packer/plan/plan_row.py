"""`RowPlanner`: plans one row of a pack again, as a shard of one piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packer.config.config import Setting
from packer.decoding.decode import decoder_identity
from packer.decoding.raw_file import SEPARATOR
from packer.errors import InputError
from packer.pixels.choices import NATIVE, TILE
from packer.pixels.resize import Geometry
from packer.publish.target import holds_pack
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.sources.files.folder import FolderSource
from packer.sources.pack import PackSource
from readers.contract.errors import ReadError
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.tiles import Size, Tile
from readers.stores.open_store import url_of

NPY = "npy"
"""The format of the row that is built again: only its numbers are compared."""
LEVEL = "slide-level"


@dataclass(frozen=True)
class StampedRow:
    """The origin of a row, as the stamps of its pack have it."""

    split: str
    key: str
    source: str
    """The kind of its source."""
    parts: tuple[str, ...]
    size: Size | None
    """The upright size of its picture."""
    recipe: str
    """The fingerprint of the recipe of its shard."""


@dataclass(frozen=True)
class PlannedRow:
    """A row of a source as a shard of one piece."""

    source: Source
    spec: ShardSpec

    @property
    def files(self) -> dict[str, str]:
        """The files of each field, or the position of its row in a pack."""
        parts = zip(self.spec.recipe.rules, self.spec.pieces[0].ref.parts, strict=True)
        return {rule.name: part.replace(SEPARATOR, " ") for rule, part in parts}

    @property
    def bytes(self) -> int:
        """The bytes of the stored row."""
        return int(self.spec.recipe.row_bytes(self.spec.pieces).sum())

    @property
    def other_decoders(self) -> str:
        """The decoders of the build, if this machine has others."""
        before = self.spec.recipe.tools[0] if self.spec.recipe.tools else ""
        return "" if before == decoder_identity() else before

    def in_own_size(self, size: Size) -> PlannedRow:
        """Return the row before it is fitted to a size and encoded. Classes are stored as an index."""
        rules = tuple(rule.unscaled for rule in self.spec.recipe.rules)
        geometry = Geometry(None, NATIVE, resolution=self.spec.recipe.geometry.resolution)
        recipe = replace(self.spec.recipe, geometry=geometry, rules=rules)
        return replace(self, spec=ShardSpec(self.spec.split, (Piece(self.spec.pieces[0].ref, size),), recipe))


class RowPlanner:
    """Plans rows of what the last build read, which is opened once: a folder, or a pack. Raises InputError."""

    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self._source = _source_of(settings)

    def plan(self, row: StampedRow, recipe_facts: Mapping[str, Any]) -> PlannedRow:
        """Plan a row. Raises InputError if its files must not or cannot be read."""
        recipe, source = _recipe(recipe_facts), self._source
        if row.recipe != recipe.fingerprint() or len(row.parts) != len(recipe.fields):
            raise InputError("the row was packed by another recipe than this generation has")
        if row.source != source.kind:
            raise InputError(f"the row came from a source of the kind {row.source!r}, and the last build names another")
        source.check_parts(row.parts)
        tile = Tile.of(row.key) if recipe.geometry.fit == TILE else None
        if isinstance(source, FolderSource):
            source = replace(source, templates=tuple(rule.template for rule in recipe.rules))
        key, size, origin = (row.key, row.size, None) if tile is None else (tile.picture, tile.size, tile.origin)
        piece = Piece(RowRef(row.split, key, row.parts), size if recipe.geometry.depends_on_source else None, origin)
        return PlannedRow(source, ShardSpec(row.split, (piece,), replace(recipe, storage=NPY)))


def _source_of(settings: Mapping[str, Setting]) -> Source:
    if "from" in settings:
        path = Path(str(settings["from"]))
        if not holds_pack(path):
            raise InputError(
                f"the rows came from {settings['from']}: only rows of folders and packs are read again here"
            )
        try:
            return PackSource.at(path)
        except ReadError as error:
            raise InputError(str(error)) from error
    if "raw" not in settings:
        raise InputError("the rows came from a program in Python, so only a build can read them again")
    if url_of(settings["raw"]) is not None:
        raise InputError(f"the raw files are in {settings['raw']}: only those on this machine are read again here")
    raw = Path(str(settings["raw"]))
    if not raw.is_dir():
        raise InputError(f"{raw}: the raw folder cannot be reached: it is not there, or was moved")
    return FolderSource(raw, volumes=bool(settings.get("volumes")), slide_level=int(str(settings.get(LEVEL, 0))))


def _recipe(facts: Mapping[str, Any]) -> Recipe:
    problems: list[JsonProblem] = []
    try:
        recipe = Recipe.from_json(Entry(dict(facts), "recipe", problems))
    except (LookupError, TypeError, ValueError):
        problems.append(JsonProblem("recipe", "is not known"))
    if problems:
        raise InputError("the recipe is one of another release of the packer")
    return recipe
