"""`Recipe`: everything that decides the bytes of a pack, besides the raw files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.bands import FEW_BITS, Bands
from packer.decoding.decode import decoder_identity
from packer.decoding.no_data import RULE as NO_DATA
from packer.decoding.rules import CHECK, PLACES, ImageRules
from packer.pixels.choices import EDGES, FITS, INTERPOLATIONS, NATIVE, TILE
from packer.pixels.encode import tools_of_encodings
from packer.pixels.label_rules import LabelRules
from packer.pixels.number_rules import LINEAR, ValueRules
from packer.pixels.resize import Geometry
from packer.pixels.valid_mean import RULE as VALID_MEAN
from packer.recipe.blocks import Blocks
from packer.recipe.field_rule import FieldRule
from packer.recipe.piece import Piece, PieceTable
from packer.recipe.read_rules import ReadRules
from packer.recipe.source import Source
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL, Field
from readers.contract.json_entry import Entry, fingerprint
from readers.contract.manifest import STORAGES

ROWS_OF_A_SHARD = 1 << 16
"""The most rows that a shard has on average: a worker needs 1.7 KB for each row besides its pixels."""


@dataclass(frozen=True)
class Recipe:
    """The options that decide the bytes. The first field is a picture. `tools` holds the versions of the libraries that
    decode and write, and of the rules of our own."""

    storage: str
    geometry: Geometry
    rules: tuple[FieldRule, ...]
    shard_bytes: int
    tools: tuple[str, ...]
    blocks: Blocks | None = None
    """The rule for the split of each tile of a picture; by default all have the split of the picture."""
    place: str = CHECK
    """The way to treat rows whose fields are at different places."""

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns."""
        return tuple(rule.field for rule in self.rules)

    @property
    def sides(self) -> int:
        """The number of sides of a row: 3 of volumes."""
        return len(self.fields[0].sides)

    @property
    def label(self) -> FieldRule | None:
        """The field that has one class for each pixel."""
        return next((rule for rule in self.rules if rule.name == LABEL), None)

    @property
    def classes(self) -> ClassTable | None:
        """The classes of the label."""
        return None if self.label is None else self.label.field.classes

    @property
    def image_rules(self) -> ImageRules:
        """The rules of the first picture."""
        return self.rules[0].image_rules

    @property
    def read_rules(self) -> ReadRules:
        """The rules for the headers of images and labels."""
        return ReadRules(self.image_rules, LabelRules() if self.label is None else self.label.label_rules)

    @property
    def cuts_tiles(self) -> bool:
        """True if each row of the source becomes several tiles, with keys of their own."""
        return self.geometry.fit == TILE

    @property
    def max_pixels(self) -> int:
        """The most pixels of a file."""
        return self.image_rules.max_pixels

    def fields_of(self, pieces: Sequence[Piece]) -> tuple[Field, ...]:
        """Return the fields of these pieces. All of them have the same: those whose part of the row is not empty."""
        if not len(pieces):
            return self.fields
        return tuple(field for field, part in zip(self.fields, pieces[0].ref.parts, strict=True) if part)

    def row_bytes(self, pieces: Sequence[Piece]) -> NDArray[np.int64]:
        """Return the raw bytes of each piece's row; 0 if the size of its picture is unknown."""
        pixel = sum(field.pixel_bytes for field in self.fields_of(pieces))
        if self.geometry.size is not None:
            return np.full(len(pieces), pixel * math.prod(self.geometry.size), np.int64)
        if isinstance(pieces, PieceTable):
            areas: NDArray[np.int64] = pieces.sizes.astype(np.int64).prod(1)
            return areas * pixel
        return np.fromiter((pixel * math.prod(piece.size or (0,)) for piece in pieces), np.int64, len(pieces))

    def weights(self, pieces: Sequence[Piece]) -> tuple[NDArray[np.int64], int]:
        """Return the share of each piece in a shard, and of a full shard: in rows, or in bytes for native rows."""
        if self.geometry.fit == NATIVE:
            least = max(1, self.shard_bytes // ROWS_OF_A_SHARD)
            return np.maximum(least, self.row_bytes(pieces)), self.shard_bytes
        assert self.geometry.size is not None
        row = sum(field.row_bytes_at(*self.geometry.size) for field in self.fields_of(pieces))
        return np.broadcast_to(np.int64(1), len(pieces)), max(1, min(ROWS_OF_A_SHARD, self.shard_bytes // row))

    def fingerprint(self) -> str:
        return fingerprint(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "storage": self.storage,
            "size": list(self.geometry.size or ()),
            "fit": self.geometry.fit,
            "overlap": self.geometry.overlap,
            "edge": self.geometry.edge,
            "interpolation": self.geometry.interpolation,
            **({} if self.geometry.resolution is None else {"resolution": self.geometry.resolution}),
            "fields": [rule.to_json() for rule in self.rules],
            "shard_bytes": self.shard_bytes,
            "tools": list(self.tools),
            **({} if self.blocks is None else {"blocks": self.blocks.to_json()}),
            **({} if self.place == CHECK else {"place": self.place}),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> Recipe:
        recipe = cls(
            storage=entry.choice("storage", STORAGES),
            geometry=_geometry(entry),
            rules=tuple(map(FieldRule.from_json, entry.entries("fields"))),
            shard_bytes=entry.whole("shard_bytes", least=1),
            tools=entry.texts("tools"),
            blocks=Blocks.from_json(entry.entry("blocks")) if entry.has("blocks") else None,
            place=entry.choice("place", PLACES) if entry.has("place") else CHECK,
        )
        if recipe.blocks is not None and not recipe.blocks.have_room(recipe.geometry):
            entry.problem("blocks", "expected blocks with room for a tile and its margins")
        entry.close()
        return recipe


def tools_of(source: Source, geometry: Geometry, rules: Sequence[FieldRule], writer: str) -> tuple[str, ...]:
    """Return the versions of everything that decides the bytes, from reading a file to writing a shard."""
    is_linear = any(isinstance(rule.read, ValueRules) and rule.read.interpolation == LINEAR for rule in rules)
    pixels = [*source.tools, *geometry.tools]
    pixels += [VALID_MEAN] if is_linear else []
    pixels += [NO_DATA] if any(rule.field.no_data or isinstance(rule.read, ValueRules) for rule in rules) else []
    pixels += [FEW_BITS] if not source.gives_arrays and any(map(_may_be_of_few_bits, rules)) else []
    return (decoder_identity(), *pixels, *tools_of_encodings([rule.field for rule in rules]), writer)


def _may_be_of_few_bits(rule: FieldRule) -> bool:
    """Return whether the files of a field could be gray of 1, 2 or 4 bits. Their numbers are never stored in more."""
    if not isinstance(rule.read, ImageRules) or rule.read.bands is None or rule.field.range is None:
        return False
    return Bands(rule.read.bands).may_be_of_few_bits(rule.field.bands or ())


def _geometry(entry: Entry) -> Geometry:
    size = entry.wholes("size", least=1)
    return Geometry(
        (size[0], size[1]) if len(size) == 2 else None,
        entry.choice("fit", FITS),
        entry.choice("interpolation", INTERPOLATIONS),
        entry.whole("overlap"),
        entry.choice("edge", EDGES),
        entry.number("resolution") if entry.has("resolution") else None,
    )
