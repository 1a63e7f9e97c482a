"""`PlannedFiles`: a plan folder, and what it expects of the pack that its parts are built into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packer.config.config import Settings, parse_config
from packer.errors import UsageError
from packer.plan.expected import Expected
from packer.plan.request import Judgement, Running
from packer.publish.generation import current_manifest
from packer.publish.local_mirror import receipts_of
from packer.publish.ticket import Ticket, folder_of, tickets_among
from packer.recipe.plan_folder import PLAN, PlanFolder
from packer.shards.receipt_on_disk import whole_shard
from readers.contract import VERSION
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, shard_stem
from readers.contract.tiles import picture_of


@dataclass(frozen=True)
class PlannedFiles:
    """A plan folder, the options that it was planned with, and what it expects of a pack."""

    folder: PlanFolder
    settings: Settings
    out: Path
    """The pack that its shards are built into."""
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
        own = facts.recipe.classes if facts.own_classes else None
        numbers = len(folder), facts.rows, facts.pieces
        rest = facts.sizes or Counter(), own if current is None else current.classes, folder.spec
        expected = Expected(Judgement.of(settings), facts.recipe, *numbers, facts.missing, *rest)
        return cls(folder, settings, out, expected)

    def receipt(self, number: int, fingerprint: str) -> Receipt | None:
        """Return the receipt of a shard of the plan if the pack has it, with all of its files."""
        path = self.out / SHARDS / (shard_stem(self.folder.split(number), fingerprint) + SUFFIX)
        return whole_shard(path)

    def check(self, number: int, receipt: Receipt) -> None:
        """Raise DamagedError if a receipt is not of this shard of the plan."""
        pieces = int(self.folder.records["pieces"][number])
        key = receipt.sources[0].key if receipt.sources else ""
        first = picture_of(key) if self.expected.cuts_tiles else key
        is_one = receipt.recipe == self._recipe and len(receipt.sources) == pieces
        if not is_one or not self.folder.begins_with(number, first):
            raise DamagedError(f"{receipt.stem}: is not shard {number} of {self.folder.folder}")

    @property
    def task_timeout(self) -> int:
        """The seconds that one pair may take."""
        return Running.of(self.settings).task_timeout

    @cached_property
    def _recipe(self) -> str:
        return self.expected.recipe.fingerprint()


def stems_of(folder: PlanFolder, numbers: Iterable[int], shard_tickets: Mapping[int, Sequence[Ticket]]) -> set[str]:
    """Return the stems of these shards of a plan that may exist: by their tickets, or since before the plan."""
    stems = set[str]()
    for number in numbers:
        old = folder.fingerprint(number)
        fingerprints = [ticket.fingerprint for ticket in shard_tickets.get(number, ())]
        if not fingerprints and old is not None:
            fingerprints = [old]
        stems.update(shard_stem(folder.split(number), fingerprint) for fingerprint in fingerprints)
    return stems


def receipts_in(folder: PlanFolder, names: Iterable[str]) -> list[str]:
    """Return the names of the receipts of a plan, among the names of all objects of a pack."""
    tickets, _ = tickets_among((name for name in names if name.startswith(f"{folder_of(folder.sha256)}/")), len(folder))
    return receipts_of(stems_of(folder, range(len(folder)), tickets))
