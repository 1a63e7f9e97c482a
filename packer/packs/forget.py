"""`packer forget`: remove a row from every kept generation of a pack, with a proof.

The shards that have the row are written again without it. Then the manifests that name them are replaced, and last the
old shards are deleted. If it is killed, the row is in some generations still: call it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from packer.errors import BusyError, UsageError
from packer.packs.generations import check_pack, list_generations
from packer.packs.smaller_shard import write_without
from packer.packs.staged_copies import list_copies, source_of
from packer.publish.atomic import target_errors, write_atomic
from packer.publish.lock import locked
from packer.publish.next_manifest import remade_manifest
from packer.publish.pin import check_pin
from packer.publish.remarks import forget_in_remarks
from packer.publish.target import STAMP_SUFFIX, STAMPS, TICKETS, tidy
from packer.recipe.row_ref import files_of
from packer.shards.stamps import load_stamps_of
from readers.contract.atomic import sync_folder
from readers.contract.errors import DamagedError, UnknownKeyError
from readers.contract.manifest import CELLS, MANIFEST, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.receipt_facts import AllReceipts
from readers.contract.shard_table import table_path
from readers.contract.tiles import picture_of
from readers.pack import Pack
from readers.stores.checksums import read_receipt
from readers.stores.open_store import is_url

_STEM = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{32})\.")


@dataclass(frozen=True)
class ChangedShard:
    """A shard that had the row, and the one that has its other rows; each with the SHA-256 of its receipt.

    Before it is done, and if there is no other row or reject, `after` and its receipt are empty.
    """

    before: str
    receipt_before: str
    after: str
    receipt_after: str
    rows_before: int
    rows_after: int


@dataclass(frozen=True)
class ChangedGeneration:
    """A generation that had the row: the checksum of its manifest before and after."""

    number: int
    manifest_before: str
    manifest_after: str


@dataclass(frozen=True)
class Forgotten:
    """The proof that a row is gone from a pack, and what may still have it."""

    key: str
    rows: tuple[str, ...]
    """Split and key of the row, or of each tile of the picture."""
    shards: tuple[ChangedShard, ...]
    generations: tuple[ChangedGeneration, ...]
    deleted: tuple[str, ...]
    """The files that were deleted, below the pack."""
    raw: tuple[str, ...]
    """The raw files of the row, below the raw folder, if stamps know them: the next build packs them again."""
    copies: tuple[str, ...]
    """The staged copies of the pack on this machine, which have the row."""


def forget_row(out: str | PathLike[str], key: str, *, splits: Sequence[str] = (), dry_run: bool = False) -> Forgotten:
    """Remove the row with this key from every kept generation of a pack; a picture in tiles loses all of them.

    `splits` are those to look in, by default all. If two splits of a generation have the key, they must be named.

    A generation keeps its number, and gets another checksum. A `dry_run` changes nothing, and names no shard after it.
    Raises UnknownKeyError if no generation has the row, PinnedError if the pack is pinned, BusyError while parts of a
    plan are built, UsageError if a generation has no other row.
    """
    if is_url(out):
        raise UsageError(f"{out}: a row is forgotten in a folder; packer pull it, forget the row, push it to a new URL")
    out = Path(out)
    check_pack(out)
    with locked(out):
        check_pin(out)
        if tickets := next((path for path in (out / TICKETS).glob("*/*")), None):
            raise BusyError(f"{tickets.parent}: parts of this plan have rows; packer commit it, or packer gc {out}")
        packs = _generations(out)
        receipts = {stem: receipt for pack in packs for stem, receipt in _receipts(pack, key, splits)}
        old = _old_stems(out, key, splits)
        if not receipts and not old:
            raise UnknownKeyError(f"{out}: no kept generation has a row with the key {key!r}")
        _check_splits(packs, receipts, key, splits)
        _check_others(packs, receipts, key)
        proof = _proof(out, key, packs, receipts)
        if dry_run:
            return proof
        tidy(out)
        smaller = _write_shards(out, packs, receipts, key)
        changed = tuple(_publish(out, pack, receipts, smaller, key) for pack in packs if _has_any(pack, receipts))
        deleted = _delete(out, {*receipts, *old}, packs)
    shards = tuple(_changed(receipt, smaller[stem]) for stem, receipt in receipts.items())
    return replace(proof, shards=shards, generations=changed, deleted=deleted)


def _is_row(key: str, other: str) -> bool:
    return key in (other, picture_of(other))


def _rows_of(key: str, receipt: Receipt) -> int:
    return sum(_is_row(key, name) for name in receipt.keys)


def _generations(out: Path) -> list[Pack]:
    """Open every kept generation, with all fields."""
    packs = []
    for generation in list_generations(out):
        if generation.manifest is None:
            raise DamagedError(f"{generation.damage}; what it has is unknown: run packer repair first")
        pack = Pack(out, generation.manifest)
        pack.select([field.name for field in pack.manifest.fields])
        packs.append(pack)
    return packs


def _stems(pack: Pack) -> list[str]:
    return [pack.stem(number).name for number in range(len(pack.table))]


def _is_in(splits: Sequence[str], split: str) -> bool:
    return not splits or split in splits


def _receipts(pack: Pack, key: str, splits: Sequence[str]) -> Iterator[tuple[str, Receipt]]:
    """Yield the receipt of each shard of a generation that has the row."""
    for number in range(len(pack.table)):
        if not _is_in(splits, pack.split_of(number).name):
            continue
        receipt = read_receipt(pack.root, pack.stem(number), pack.table.receipt(number))
        if any(_is_row(key, source.key) for source in receipt.sources):
            yield receipt.stem, replace(receipt, digest=pack.table.receipt(number))


def _old_stems(out: Path, key: str, splits: Sequence[str]) -> set[str]:
    """Return the shards that have the row, and the stamps that name it, also if no generation uses them any more."""
    stems = set()
    for path in (out / SHARDS).glob(f"*{SUFFIX}"):
        with suppress(DamagedError):
            if any(_is_row(key, source.key) for source in Receipt.load(path).sources):
                stems.add(path.name.removesuffix(SUFFIX))
    for path in (out / STAMPS).glob(f"*{STAMP_SUFFIX}"):
        stem = path.name.removesuffix(STAMP_SUFFIX)
        if any(_is_row(key, name) for name, _ in _stamped(out, stem)):
            stems.add(stem)
    return {stem for stem in stems if _is_in(splits, stem.rpartition("-")[0])}


def _stamped(out: Path, stem: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the key of each row that was stamped, and its parts."""
    stamps = load_stamps_of(out, stem)
    for line in [] if stamps is None else stamps.text.split("\n"):
        name, *parts = line.split("\0")
        yield name, parts


def _check_splits(packs: Sequence[Pack], receipts: Mapping[str, Receipt], key: str, splits: Sequence[str]) -> None:
    """Refuse a key of several splits if these are not named: they are probably different pictures."""
    for pack in packs:
        having = sorted({receipts[stem].split for stem in _stems(pack) if stem in receipts})
        if len(having) > 1 and not splits:
            named = " ".join(f"--split {split}" for split in having)
            raise UsageError(f"{pack.root}: {', '.join(having)} have a row {key!r} each; name those to forget: {named}")


def _check_others(packs: Sequence[Pack], receipts: Mapping[str, Receipt], key: str) -> None:
    """Refuse to leave a generation without rows."""
    for pack in packs:
        mine = [receipts[stem] for stem in _stems(pack) if stem in receipts]
        rows = sum(_rows_of(key, receipt) for receipt in mine)
        if rows == pack.manifest.rows:
            number = pack.manifest.generation
            raise UsageError(
                f"{pack.root}: generation {number} has no other row; delete the pack, or an old generation: "
                f"packer gc --keep 1 --grace 0 {pack.root}"
            )


def _proof(out: Path, key: str, packs: Sequence[Pack], receipts: Mapping[str, Receipt]) -> Forgotten:
    """Return what is known before anything is written."""
    rows = {f"{receipt.split}/{source.key}" for receipt in receipts.values() for source in receipt.sources}
    raw = {
        file
        for stem in receipts
        for name, parts in _stamped(out, stem)
        if _is_row(key, name)
        for part in parts
        for file in files_of(part)
        if file
    }
    return Forgotten(
        key=key,
        rows=tuple(sorted(row for row in rows if _is_row(key, row.partition("/")[2]))),
        shards=tuple(
            ChangedShard(stem, receipt.digest, "", "", receipt.rows, receipt.rows - _rows_of(key, receipt))
            for stem, receipt in receipts.items()
        ),
        generations=tuple(
            ChangedGeneration(pack.manifest.generation, pack.manifest.identity, "")
            for pack in packs
            if _has_any(pack, receipts)
        ),
        deleted=(),
        raw=tuple(sorted(raw)),
        copies=tuple(str(copy.path) for copy in list_copies() if str(copy.source) == source_of(out)),
    )


def _has_any(pack: Pack, receipts: Mapping[str, Receipt]) -> bool:
    return any(stem in receipts for stem in _stems(pack))


def _write_shards(
    out: Path, packs: Sequence[Pack], receipts: Mapping[str, Receipt], key: str
) -> dict[str, Receipt | None]:
    """Write each shard without the row, once. Return the new receipts by the old stems, None for a shard that was
    only the row."""
    smaller: dict[str, Receipt | None] = {}
    for pack in packs:
        for number, stem in enumerate(_stems(pack)):
            if stem not in receipts or stem in smaller:
                continue
            receipt = receipts[stem]
            if all(_is_row(key, source.key) for source in receipt.sources):
                smaller[stem] = None
                continue
            fields = pack.fields_of(number)
            written = write_without(out, pack.shard(number), fields, receipt, lambda name: _is_row(key, name))
            smaller[stem] = replace(written, digest=hashlib.sha256(written.to_text().encode()).hexdigest())
    return smaller


def _publish(
    out: Path, pack: Pack, receipts: Mapping[str, Receipt], smaller: Mapping[str, Receipt | None], key: str
) -> ChangedGeneration:
    """Replace the manifest of a generation, after its table was written: its own, and the current one if it is that."""
    before = pack.manifest
    every = AllReceipts(name=picture_of)
    for number, stem in enumerate(_stems(pack)):
        path = pack.stem(number)
        receipt = smaller[stem] if stem in receipts else read_receipt(out, path, pack.table.receipt(number))
        if receipt is not None:
            every.add(number, receipt)
    after, table = remade_manifest(before, every)
    write_atomic(table_path(out, after.table), table)
    text = after.to_text()
    Manifest.from_text(text, "the new manifest")
    forget_in_remarks(out, before, after, key)
    if Manifest.load(out).generation == after.generation:
        write_atomic(out / MANIFEST, text)  # before its kept copy: that one says whether all is done
    write_atomic(generation_path(out, after.generation), text)
    return ChangedGeneration(before.generation, before.identity, after.identity)


def _delete(out: Path, stems: set[str], packs: Sequence[Pack]) -> tuple[str, ...]:
    """Delete the files of these shards, and the tables of generations that have others now. Return their names."""
    used = {Manifest.load(out, pack.manifest.generation).table for pack in packs}
    paths = [
        path
        for folder in (SHARDS, CELLS, STAMPS)
        for path in sorted((out / folder).glob("*"))
        if (match := _STEM.match(path.name)) and match[1] in stems
    ]
    paths += [table_path(out, pack.manifest.table) for pack in packs if pack.manifest.table not in used]
    paths.sort(key=lambda path: not path.name.endswith(SUFFIX))  # a kill leaves no receipt whose files are gone
    for path in paths:
        with target_errors(path):
            path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        sync_folder(folder)
    return tuple(str(path.relative_to(out)) for path in paths)


def _changed(before: Receipt, after: Receipt | None) -> ChangedShard:
    if after is None:
        return ChangedShard(before.stem, before.digest, "", "", before.rows, 0)
    return ChangedShard(before.stem, before.digest, after.stem, after.digest, before.rows, after.rows)
