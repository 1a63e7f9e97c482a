"""The difference: what a build would change in a pack, by the names of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packer.plan.plan import Plan
from packer.plan.reuse import Known
from packer.recipe.recipe import changed_recipe
from packer.shards.stamps import load_stamps
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import SUFFIX, Receipt, shard_stem
from readers.contract.shard_table import ShardTable
from readers.contract.tiles import picture_of

Names = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Between a pack and what a build would make of the raw folder as it is now."""

    added: Names
    changed: Names
    removed: Names
    recipe: tuple[tuple[str, object, object], ...]
    """Options that decide the bytes and are others than in the pack: key, before, now."""
    rebuilt_shards: int
    reused_shards: int
    dropped_shards: int

    @property
    def nothing(self) -> bool:
        """Whether a build would leave the pack as it is."""
        return not (self.rebuilt_shards or self.dropped_shards)

    def to_json(self) -> dict[str, Any]:
        return {
            "added": list(self.added),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "recipe": {key: {"before": before, "now": now} for key, before, now in self.recipe},
            "rebuilt_shards": self.rebuilt_shards,
            "reused_shards": self.reused_shards,
            "dropped_shards": self.dropped_shards,
        }


def difference(plan: Plan) -> Difference:
    """What `packer build` would do by this plan."""
    out = plan.request.out
    receipts = current_receipts(out)
    before = {(one.split, picture_of(source.key)) for one in receipts for source in one.sources}
    now = {(pair.split, pair.key): pair for pair in plan.pairing.pairs}
    rebuilt = {(spec.split, picture_of(piece.key)) for spec in plan.new_specs.values() for piece in spec.pieces}
    doubtful = [now[name] for name in sorted(rebuilt & before)]
    known = Known(out, plan.request.raw, load_stamps(out)).packed(doubtful, plan.recipe.fingerprint())
    reused = {receipt.stem for receipt in plan.reused.values()}
    return Difference(
        added=_names(now.keys() - before),
        changed=tuple(f"{pair.split}/{pair.key}" for pair, same in zip(doubtful, known, strict=True) if not same),
        removed=_names(before - now.keys()),
        recipe=() if plan.current is None else changed_recipe(plan.current.recipe, plan.recipe),
        rebuilt_shards=len(plan.new_specs),
        reused_shards=len(plan.reused),
        dropped_shards=len([one for one in receipts if one.stem not in reused]),
    )


def current_receipts(out: Path) -> list[Receipt]:
    """The receipts of the current generation; a damaged one is like one that is not there."""
    manifest = Manifest.load(out)
    table = ShardTable.open(out, manifest)
    splits = [split.name for split in manifest.splits for _ in range(split.shards)]
    found = []
    for shard, split in enumerate(splits):
        try:
            found.append(Receipt.load(out / SHARDS / (shard_stem(split, table.fingerprint(shard)) + SUFFIX)))
        except DamagedError:
            continue
    return found


def _names(places: set[tuple[str, str]]) -> Names:
    return tuple(f"{split}/{key}" for split, key in sorted(places))
