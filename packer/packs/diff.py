"""The difference between a pack and a build of its raw folder in its present state, by the names of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import Any

from packer.config.last_build import NAME as LAST_BUILD
from packer.config.last_build import last_settings
from packer.packs.generations import receipt_paths
from packer.packs.stored import seen
from packer.plan.make_plan import make_plan
from packer.plan.plan import Plan
from packer.plan.request import Input, Request, raw_or_source
from packer.publish.bucket import with_stamps
from packer.publish.local_mirror import Entries
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.tiles import picture_of

Names = tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The changes that a build would make."""

    added: Names
    changed: Names
    removed: Names
    recipe: tuple[tuple[str, object, object], ...]
    """Changed options that decide the bytes: key, before, now."""
    fields: dict[str, Names]
    """The fields that differ of each changed row, if that is known without loading it: those whose bytes are others, or
    that came or went. With another recipe nothing is compared."""
    rebuilt_shards: int
    reused_shards: int
    dropped_shards: int

    @property
    def is_empty(self) -> bool:
        """True if a build would not change the pack."""
        return not (self.rebuilt_shards or self.dropped_shards)

    def to_json(self) -> dict[str, Any]:
        return {
            "added": list(self.added),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "recipe": {key: {"before": before, "now": now} for key, before, now in self.recipe},
            "changed_fields": {name: list(fields) for name, fields in self.fields.items()},
            "rebuilt_shards": self.rebuilt_shards,
            "reused_shards": self.reused_shards,
            "dropped_shards": self.dropped_shards,
        }


def diff_pack(out: str | PathLike[str], raw: Input, *, config: str | PathLike[str] | None = None) -> Difference:
    """Compare a pack with the present raw folder or source. Nothing is changed.

    The options come from the last build, or from `config`.
    """
    folder, source = raw_or_source(raw)
    with seen(out, choose=_names_for_diff) as (root, _):
        settings = last_settings(root, folder, None if config is None else Path(config), source is None)
        return difference(make_plan(Request.from_settings(settings, source)))


def _names_for_diff(entries: Entries) -> list[str]:
    """Return the names of the objects that are compared: settings, stamps, and all receipts."""
    receipts = (name for name in entries if name.startswith(f"{SHARDS}/") and name.endswith(SUFFIX))
    return [LAST_BUILD, *{*with_stamps(entries), *receipts}]


def difference(plan: Plan) -> Difference:
    """The changes that a build with this plan would make."""
    out = plan.out
    receipts = list(_intact_receipts(out))
    name = picture_of if plan.had_tiles else str
    before = {(receipt.split, name(source.key)): receipt.fields for receipt in receipts for source in receipt.sources}
    now = {(ref.split, ref.key): _fields_of(plan, ref.parts) for ref in plan.found_rows.refs}
    rebuilt = {(spec.split, piece.ref.key) for spec in plan.new_specs.values() for piece in spec.pieces}
    unchanged = {(ref.split, ref.key) for ref, same in zip(plan.found_rows.refs, plan.unchanged, strict=True) if same}
    reused = {receipt.stem for receipt in plan.reused.values()}
    suspects = (rebuilt & before.keys()) - unchanged
    suspects |= {key for key, fields in now.items() if before.get(key, fields) != fields}  # same in an older shard
    differing = {} if plan.recipe_changes else _changed_fields(plan, receipts, suspects)
    changed = {row for row in suspects if differing.get(row) != ()}
    return Difference(
        added=_names(now.keys() - before.keys()),
        changed=_names(changed),
        removed=_names(before.keys() - now.keys()),
        recipe=plan.recipe_changes,
        fields={
            name: differing[row] for row, name in zip(sorted(changed), _names(changed), strict=True) if row in differing
        },
        rebuilt_shards=len(plan.new_specs),
        reused_shards=len(plan.reused),
        dropped_shards=len([receipt for receipt in receipts if receipt.stem not in reused]),
    )


def _changed_fields(
    plan: Plan, receipts: Sequence[Receipt], suspects: set[tuple[str, str]]
) -> dict[tuple[str, str], Names]:
    """Compare what was read of each of these rows with what its source identifies now, if it can without loading it.

    No field of a row differs if it only lies elsewhere, or if its files have other times.
    """
    name = picture_of if plan.had_tiles else str
    before = {
        key: dict(zip(receipt.fields, source.identities, strict=True))
        for receipt in receipts
        for source in receipt.sources
        if (key := (receipt.split, name(source.key))) in suspects
    }
    refs = [ref for ref in plan.found_rows.refs if (ref.split, ref.key) in suspects]
    changed_fields: dict[tuple[str, str], Names] = {}
    for ref, identity in zip(refs, plan.found_rows.source.identities(refs), strict=True):
        row = ref.split, ref.key
        old = before[row]
        if identity is not None:
            texts = zip(plan.recipe.fields, identity, strict=True)
            changed_fields[row] = tuple(field.name for field, text in texts if text != old.get(field.name, ""))
        elif moved := set(old) ^ set(_fields_of(plan, ref.parts)):  # only loading the row would show more
            changed_fields[row] = tuple(sorted(moved))
    return changed_fields


def _fields_of(plan: Plan, parts: Sequence[str]) -> Names:
    """Return the names of the fields that a row with these parts has."""
    return tuple(compress((rule.name for rule in plan.recipe.rules), parts))


def _intact_receipts(out: Path) -> Iterator[Receipt]:
    """Yield the receipts of the current generation, without damaged ones."""
    for path in receipt_paths(out, Manifest.load(out)):
        with suppress(DamagedError):
            yield Receipt.load(path)


def _names(pictures: set[tuple[str, str]]) -> Names:
    return tuple(f"{split}/{key}" for split, key in sorted(pictures))
