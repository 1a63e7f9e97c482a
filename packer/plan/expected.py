"""`Expected`: what the shards of a build must be before it is published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from packer.pixels.choices import TILE
from packer.plan.plan import Plan
from packer.plan.request import Judgement
from packer.recipe.piece import keys_of
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size


@dataclass(frozen=True)
class Expected:
    """The numbers of a plan, and the options that decide whether its shards may be published."""

    judgement: Judgement
    recipe: Recipe
    shards: int
    pairs: int
    pieces: int
    """The rows if none is rejected."""
    missing: tuple[str, ...]
    """Files without a partner that were left out."""
    sizes: Counter[Size]
    classes_before: ClassTable | None
    """The classes of the current generation; of a new pack those that the source has itself."""
    spec: Callable[[int], ShardSpec]
    """Returns a shard of the plan."""

    @property
    def cuts_tiles(self) -> bool:
        """True if each row becomes several tiles, with keys of their own."""
        return self.recipe.geometry.fit == TILE

    def refs(self, shards: Iterable[int]) -> Iterator[RowRef]:
        """Yield the rows of these shards."""
        return (piece.ref for shard in shards for piece in self.spec(shard).pieces)

    def keys(self, shard: int) -> Iterable[str]:
        """Return the keys of the rows of a shard, if none is rejected."""
        return keys_of(self.spec(shard).pieces)

    @classmethod
    def of(cls, plan: Plan) -> Expected:
        """Return what a plan in memory expects."""
        before = plan.current.classes if plan.current is not None else plan.found_rows.classes
        numbers, missing = (len(plan.specs), plan.pairs, plan.pieces), tuple(map(str, plan.found_rows.missing))
        spec = plan.specs.__getitem__
        return cls(plan.request.judgement, plan.recipe, *numbers, missing, plan.sizes, before, spec)
