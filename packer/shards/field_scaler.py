"""`FieldScaler`: scales all fields of a row to the pixels that `--resolution` says, before tiles are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from packer.decoding.raw_file import naming
from packer.errors import LostFile
from packer.pixels.resize import Geometry
from packer.pixels.resolution import Resolution, scaled_place
from packer.recipe.field_rule import FieldRule
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.source import PackedPixels
from packer.shards.file_headers import FileHeaders, first_file
from packer.shards.kinds import Decoded
from packer.shards.kinds.by_field import kinds_of
from readers.contract.place import Place
from readers.contract.tiles import Size


class FieldScaler:
    """Scales the fields of a row, each by its kind, as a pack of such rows would store them. Threads may share it."""

    def __init__(self, recipe: Recipe, rules: Sequence[FieldRule]) -> None:
        assert recipe.geometry.resolution is not None
        self._recipe, self._resolution = recipe, Resolution(recipe.geometry.resolution, recipe.max_pixels)
        self._rules = [rule.unscaled for rule in rules]

    def scaled(
        self, piece: Piece, fields: Sequence[Decoded], headers: Sequence[FileHeaders], place: Place | None
    ) -> tuple[list[Decoded], Place | None]:
        """Return the fields of a row and its place. Raise LostFile if the plan has found another picture."""
        image = first_file(next(filter(None, piece.ref.parts)))
        with naming(image):
            if not headers[0] or place is None:
                raise LostFile("has no place on a map any more; build again")
            size = self._resolution.size_of(next(iter(headers[0].values())))
            if piece.size not in (None, size):
                raise LostFile("was another picture when the build was planned; build again")
        return self._at(size, fields), scaled_place(place, fields[0].size, size)

    def _at(self, size: Size, fields: Sequence[Decoded]) -> list[Decoded]:
        """Return fields at this size."""
        geometry = Geometry(size, "stretch", self._recipe.geometry.interpolation)
        recipe, scaled = replace(self._recipe, geometry=geometry, rules=tuple(self._rules)), list[Decoded]()
        kinds = kinds_of(recipe, [rule.field for rule in self._rules])
        for rule, kind, decoded in zip(self._rules, kinds, fields, strict=True):
            numbers = np.empty(rule.field.row_shape(*size), rule.field.dtype)
            kind.store(decoded, None, numbers)
            scaled.append(kind.decode(PackedPixels.of(rule.field, numbers)))
        return scaled
