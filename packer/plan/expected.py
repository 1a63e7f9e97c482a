"""`Expected`: what the shards of a build must be before it is published, as planned in memory or in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packer.config.config import Settings, parse_config
from packer.errors import UsageError
from packer.pixels.choices import TILE
from packer.plan.plan import Plan
from packer.plan.request import Request
from packer.publish.generation import current_manifest
from packer.publish.shadow import receipts_of
from packer.publish.ticket import Ticket, folder_of, tickets_among
from packer.recipe.piece import keys_of
from packer.recipe.plan_folder import PLAN, PlanFolder
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.shards.receipt_on_disk import whole_shard
from readers.contract import VERSION
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, shard_stem
from readers.contract.tiles import Size, picture_of

LATER = ("on-bad", "max-bad", "near-duplicates", "fail-on", "accept", "task-timeout")
"""The options of a build that matter after it was planned."""


@dataclass(frozen=True)
class Expected:
    """The numbers of a plan, and the options that decide whether its shards may be published."""

    request: Request
    recipe: Recipe
    shards: int
    pairs: int
    pieces: int
    """The rows if none is rejected."""
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
        before = plan.current.classes if plan.current is not None else plan.found.classes
        count, pieces = len(plan.specs), plan.pieces
        spec = plan.specs.__getitem__
        return cls(plan.request, plan.recipe, count, plan.pairs, pieces, plan.sizes, before, spec)


@dataclass(frozen=True)
class PlannedFiles:
    """A plan folder, the options that it was planned with, and what it expects of a pack."""

    folder: PlanFolder
    settings: Settings
    expected: Expected

    @classmethod
    def open(cls, path: Path, out: Path) -> PlannedFiles:
        """Open a plan whose shards were built into `out`."""
        return cls.of(PlanFolder.open(path), out)

    @classmethod
    def of(cls, folder: PlanFolder, out: Path) -> PlannedFiles:
        """Return what a plan expects of the pack `out`. Raise UsageError if another version planned."""
        path, facts, current = folder.folder, folder.facts, current_manifest(out)
        if facts.package != VERSION:
            raise UsageError(f"{path}: was planned by segpack {facts.package}, this is {VERSION}")
        settings = parse_config(path / PLAN, facts.settings)
        later = {name: settings[name] for name in LATER if name in settings}
        request = Request.from_settings({**later, "out": str(out)})
        own = facts.recipe.classes if facts.own_classes else None
        before = own if current is None else current.classes
        sizes = facts.sizes or Counter()
        expected = Expected(request, facts.recipe, len(folder), facts.rows, facts.pieces, sizes, before, folder.spec)
        return cls(folder, settings, expected)

    def receipt(self, number: int, fingerprint: str) -> Receipt | None:
        """Return the receipt of a shard of the plan if the pack has it, with all of its files."""
        path = self.expected.request.out / SHARDS / (shard_stem(self.folder.split(number), fingerprint) + SUFFIX)
        return whole_shard(path)

    def check(self, number: int, receipt: Receipt) -> None:
        """Raise DamagedError if a receipt is not of this shard of the plan."""
        pieces = int(self.folder.records["pieces"][number])
        key = receipt.sources[0].key if receipt.sources else ""
        first = picture_of(key) if self.expected.cuts_tiles else key
        is_one = receipt.recipe == self._recipe and len(receipt.sources) == pieces
        if not is_one or not self.folder.begins_with(number, first):
            raise DamagedError(f"{receipt.stem}: is not shard {number} of {self.folder.folder}")

    @cached_property
    def _recipe(self) -> str:
        return self.expected.recipe.fingerprint()


def open_plan(path: Path) -> PlanFolder:
    """Open a plan folder."""
    return PlanFolder.open(path)


def stems_of(folder: PlanFolder, numbers: Iterable[int], found: Mapping[int, Sequence[Ticket]]) -> set[str]:
    """Return the stems of these shards of a plan that may exist: by their tickets, or since before the plan."""
    stems = set[str]()
    for number in numbers:
        old = folder.fingerprint(number)
        known = [ticket.fingerprint for ticket in found.get(number, ())] or ([] if old is None else [old])
        stems.update(shard_stem(folder.split(number), fingerprint) for fingerprint in known)
    return stems


def receipts_in(folder: PlanFolder, names: Iterable[str]) -> list[str]:
    """Return the names of the receipts of a plan, of which all objects of a pack have these names."""
    tickets, _ = tickets_among((name for name in names if name.startswith(f"{folder_of(folder.sha256)}/")), len(folder))
    return receipts_of(stems_of(folder, range(len(folder)), tickets))
