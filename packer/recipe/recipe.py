"""`Recipe`: everything that decides the bytes of a pack, besides the raw files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import decoder_identity
from packer.decoding.rules import ImageRules
from packer.pixels.choices import EDGES, FITS, IMAGE_DTYPES, INTERPOLATIONS, LABEL_FORMS, NATIVE
from packer.pixels.label_rules import LabelRules
from packer.pixels.resize import Geometry
from packer.recipe.piece import Piece, PieceTable
from packer.recipe.read_rules import ReadRules
from packer.recipe.source import Source
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL, Field, classes_field, picture_field
from readers.contract.json_entry import Entry, fingerprint
from readers.contract.manifest import STORAGES

ROWS_OF_A_SHARD = 1 << 16
"""The most rows that a shard has on average: a worker needs 1.4 KB for each row besides its pixels."""


@dataclass(frozen=True)
class Recipe:
    """The options that decide the bytes. `tools` holds the versions of the libraries that decode and write, and of the
    rules of our own."""

    storage: str
    classes: ClassTable
    geometry: Geometry
    image_dtype: str
    labels: str
    image_rules: ImageRules
    label_rules: LabelRules
    shard_bytes: int
    image_template: str
    label_template: str
    tools: tuple[str, ...]

    @cached_property
    def fields(self) -> tuple[Field, Field]:
        """The columns: image and label."""
        size = self.geometry.size
        image = picture_field(IMAGE, IMAGE_DTYPES[self.image_dtype], size)
        return image, classes_field(LABEL, self.labels, self.classes, size)

    def fields_of(self, pieces: Sequence[Piece]) -> tuple[Field, ...]:
        """Return the fields of these pieces. All of them have the same: those whose part of the row is not empty."""
        if not len(pieces):
            return self.fields
        return tuple(field for field, part in zip(self.fields, pieces[0].ref.parts, strict=True) if part)

    def row_bytes(self, pieces: Sequence[Piece]) -> NDArray[np.int64]:
        """Return the bytes of each piece's row; 0 if the size of its picture is unknown."""
        pixel = sum(field.row_bytes_at(1, 1) for field in self.fields_of(pieces))
        if self.geometry.size is not None:
            return np.full(len(pieces), pixel * math.prod(self.geometry.size), np.int64)
        if isinstance(pieces, PieceTable):
            areas: NDArray[np.int64] = pieces.sizes.astype(np.int64).prod(1)
            return areas * pixel
        return np.fromiter((pixel * math.prod(piece.size or (0,)) for piece in pieces), np.int64, len(pieces))

    def weights(self, pieces: Sequence[Piece]) -> tuple[NDArray[np.int64], int]:
        """Return the share of each piece in a shard, and that of a full shard: in rows, or in bytes for native rows."""
        if self.geometry.fit == NATIVE:
            least = max(1, self.shard_bytes // ROWS_OF_A_SHARD)
            return np.maximum(least, self.row_bytes(pieces)), self.shard_bytes
        assert self.geometry.size is not None
        row = sum(field.row_bytes_at(*self.geometry.size) for field in self.fields_of(pieces))
        return np.broadcast_to(np.int64(1), len(pieces)), max(1, min(ROWS_OF_A_SHARD, self.shard_bytes // row))

    @property
    def read_rules(self) -> ReadRules:
        return ReadRules(self.image_rules, self.label_rules)

    def fingerprint(self) -> str:
        return fingerprint(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "storage": self.storage,
            "classes": self.classes.to_json(),
            "size": list(self.geometry.size or ()),
            "fit": self.geometry.fit,
            "overlap": self.geometry.overlap,
            "edge": self.geometry.edge,
            "interpolation": self.geometry.interpolation,
            "image_dtype": self.image_dtype,
            "labels": self.labels,
            "image_rules": self.image_rules.to_json(),
            "label_rules": self.label_rules.to_json(),
            "shard_bytes": self.shard_bytes,
            "image_template": self.image_template,
            "label_template": self.label_template,
            "tools": list(self.tools),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> Recipe:
        recipe = cls(
            storage=entry.choice("storage", STORAGES),
            classes=ClassTable.from_json(entry.entry("classes")),
            geometry=_geometry(entry),
            image_dtype=entry.choice("image_dtype", tuple(IMAGE_DTYPES)),
            labels=entry.choice("labels", LABEL_FORMS),
            image_rules=ImageRules.from_json(entry.entry("image_rules")),
            label_rules=LabelRules.from_json(entry.entry("label_rules")),
            shard_bytes=entry.whole("shard_bytes", least=1),
            image_template=entry.text("image_template"),
            label_template=entry.text("label_template"),
            tools=entry.texts("tools"),
        )
        entry.close()
        return recipe


def tools_of(source: Source, geometry: Geometry, writer: str) -> tuple[str, ...]:
    """Return the versions of everything that decides the bytes, from reading a file to writing a shard."""
    return (decoder_identity(), *source.tools, *geometry.tools, writer)


def recipe_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    """Return (key, before, now) for each difference between two recipes as JSON. A missing key counts as None."""
    return tuple((key, before.get(key), now.get(key)) for key in {**before, **now} if before.get(key) != now.get(key))


def _geometry(entry: Entry) -> Geometry:
    size = entry.wholes("size", least=1)
    return Geometry(
        (size[0], size[1]) if len(size) == 2 else None,
        entry.choice("fit", FITS),
        entry.choice("interpolation", INTERPOLATIONS),
        entry.whole("overlap"),
        entry.choice("edge", EDGES),
    )
