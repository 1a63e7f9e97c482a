"""`ShardSpec`: the pieces of one shard and the recipe, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from packer.errors import EngineError
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from readers.contract.fields import Field
from readers.contract.json_entry import Entry, JsonProblem, loads


@dataclass(frozen=True)
class ShardSpec:
    """The input of one shard. Any worker on any machine makes the same bytes from it."""

    split: str
    pieces: Sequence[Piece]
    recipe: Recipe

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that all rows of the shard have."""
        return self.recipe.fields_of(self.pieces)

    @property
    def weight(self) -> int:
        """The rows of the shard, or their bytes if they have different sizes."""
        if self.recipe.geometry.size is not None:
            return len(self.pieces)
        return int(self.recipe.row_bytes(self.pieces).sum())

    def to_text(self) -> str:
        pieces = [piece.to_json() for piece in self.pieces]
        return json.dumps({"split": self.split, "pieces": pieces, "recipe": self.recipe.to_json()})

    @classmethod
    def from_text(cls, text: str) -> ShardSpec:
        problems: list[JsonProblem] = []
        entry = Entry(loads(text), "", problems)
        split = entry.text("split")
        pieces = tuple(Piece.from_json(split, values) for values in entry.lists("pieces"))
        spec = cls(split, pieces, Recipe.from_json(entry.entry("recipe")))
        entry.close()
        if problems:
            raise EngineError("a shard spec is not valid: " + "; ".join(str(problem) for problem in problems))
        return spec
