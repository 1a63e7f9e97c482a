"""Verify a pack: every byte of the current generation against its checksum, from the manifest down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from packer.errors import first_of
from packer.packs.verify_rows import WrongRow, damaged_rows, wrong_rows
from packer.progress import Advance
from packer.publish.next_manifest import parts_of
from packer.shards.receipt_on_disk import content_fingerprint
from packer.shards.stored_cells import cell_problems
from readers.contract.errors import DamagedError, ReadError
from readers.contract.files import plain_file, sha256
from readers.contract.json_entry import fingerprint
from readers.contract.kinds import PICTURE
from readers.contract.manifest import GENERATIONS, MANIFEST, Manifest, generation_path
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path
from readers.contract.statistics import misfit, total
from readers.formats import shard_paths
from readers.formats.column import ShardFacts
from readers.pack import Pack
from readers.stores.checksums import damaged_files, read_receipt

MOST_ROWS_NAMED = 10


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a pack."""

    message: str
    """A line that names the file and what is wrong."""
    shard: str | None = None
    """The stem of the damaged shard's files; None if no shard is damaged."""
    file: Path | None = None
    row: str | None = None
    """The key of the damaged row."""
    field: str | None = None
    """The name of the field that is damaged in this row."""

    def __str__(self) -> str:
        return self.message


AtHand: TypeAlias = Callable[[Pack, int], AbstractContextManager[None]]
"""Has the files of a shard of a pack in the pack's folder, as long as the context lasts."""


def verify(
    root: Path,
    workers: int,
    advance: Advance,
    deep: bool = False,
    at_hand: AtHand = lambda pack, shard: nullcontext(),
) -> list[Damage]:
    """Everything that is wrong with the pack at `root`; `advance` hears of the bytes checked."""
    manifest = Manifest.load(root)
    damage = [*_check_generations(root, manifest), *_check_table(root, manifest)]
    if damage:
        return damage
    pack = Pack(root, manifest)

    def check(shard: int) -> tuple[Receipt | None, list[Damage]]:
        with at_hand(pack, shard):
            receipt, wrong = _check_shard(pack, shard, deep)
        advance(pack.table.bytes(shard))
        return receipt, wrong

    with ThreadPoolExecutor(workers) as pool:
        checked = list(pool.map(check, range(len(pack.table))))
    damage = [item for _, items in checked for item in items]
    receipts = [receipt for receipt, _ in checked if receipt is not None]
    return damage if len(receipts) < len(checked) else [*damage, *_wrong_sums(pack, receipts)]


def _check_generations(root: Path, manifest: Manifest) -> Iterator[Damage]:
    """Earlier manifests must be whole, and the current one must be among them."""
    for path in sorted((root / GENERATIONS).glob("*.json")):
        try:
            Manifest.read(root, path)
        except (ReadError, OSError) as error:
            yield _unreadable(path, error)
    kept = generation_path(root, manifest.generation)
    try:
        same = Manifest.read(root, kept) == manifest
    except (ReadError, OSError):
        same = False
    if not same:
        yield Damage(f"{kept}: is missing or differs from {root / MANIFEST}, whose copy it should be", file=kept)


def _check_table(root: Path, manifest: Manifest) -> Iterator[Damage]:
    path = table_path(root, manifest.table)
    try:
        digest = sha256(plain_file(root, path))
    except (OSError, DamagedError) as error:
        yield _unreadable(path, error)
        return
    if digest != manifest.table:
        yield Damage(f"{path}: its SHA-256 is {digest}, the manifest says {manifest.table}", file=path)


def _check_shard(pack: Pack, shard: int, deep: bool) -> tuple[Receipt | None, list[Damage]]:
    """The receipt of a shard, unless it contradicts the table, and what is wrong with the shard."""
    stem = pack.stem(shard)
    path = stem.with_name(stem.name + SUFFIX)
    try:
        receipt = read_receipt(pack.root, stem, pack.table.receipt(shard))
        lies = [Damage(f"{path}: {line}", stem.name, path) for line in contradictions(pack, shard, receipt)]
        damage = [Damage(message, stem.name, file) for file, message in damaged_files(pack.root, stem, receipt)]
        if damage:
            damage += _damaged_rows(pack, shard, receipt)
        elif deep and receipt.rows and not lies:
            damage += _check_rows(pack, shard, receipt)
        if not damage and not lies:
            damage += [Damage(line, stem.name, file) for file, line in cell_problems(pack, shard, receipt, deep)]
    except DamagedError as error:
        return None, [Damage(str(error), stem.name, path)]
    return None if lies else receipt, [*lies, *damage]


def contradictions(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """Yield the facts in a receipt that contradict the shard table, the manifest or the receipt itself.

    Each of these files may be whole and still be wrong.
    """
    stem, manifest = pack.stem(shard), pack.manifest
    facts = ShardFacts(receipt.rows, pack.fields_of(shard))
    paths = shard_paths(manifest.storage)(stem, facts) if receipt.rows else []
    has_picture = any(field.kind == PICTURE for field in facts.fields)
    for fact, stored, expected in (
        ("split", receipt.split, pack.split_of(shard).name),
        ("fingerprint", receipt.fingerprint, pack.table.fingerprint(shard)),
        ("fingerprint of its pairs", content_fingerprint(receipt), receipt.fingerprint),
        ("storage", receipt.storage, manifest.storage),
        ("fields", receipt.fields, tuple(field.name for field in facts.fields)),
        ("recipe", receipt.recipe, fingerprint(manifest.recipe)),
        ("rows", receipt.rows, pack.table.rows(shard)),
        ("rows by their keys", len(receipt.keys), receipt.rows),
        ("looks", len(receipt.looks), receipt.rows if has_picture else 0),
        ("bytes", receipt.bytes, pack.table.bytes(shard)),
        ("files", sorted(stem.name + file.suffix for file in receipt.files), sorted(path.name for path in paths)),
    ):
        if stored != expected:
            yield f"says {stored!r} for its {fact}; expected {expected!r}"
    wrong = misfit(receipt.statistics, [field for field in manifest.fields if field.name in receipt.fields])
    if wrong is not None:
        yield f"statistics: {wrong}"


def _wrong_sums(pack: Pack, receipts: Sequence[Receipt]) -> Iterator[Damage]:
    """The totals in the manifest that are not the sums over its shards."""
    manifest, path = pack.manifest, pack.root / MANIFEST
    for split, shards, _ in pack.splits():
        members = receipts[shards.start : shards.stop]
        rows, rejects = sum(receipt.rows for receipt in members), sum(len(receipt.rejects) for receipt in members)
        name = f"{path}: split {split.name!r}"
        if (rows, rejects) != (split.rows, split.rejects):
            expected = f"{split.rows} rows and {split.rejects} rejects"
            yield Damage(f"{name}: {expected}; its shards have {rows} and {rejects}", file=path)
        elif parts_of(members) != split.parts:
            yield Damage(f"{name}: parts: are not the parts of its shards", file=path)
        if split.statistics != total(manifest.fields, (receipt.statistics for receipt in members)):
            yield Damage(f"{name}: statistics: are not the sum of the statistics of its shards", file=path)
    size = sum(receipt.bytes for receipt in receipts)
    if manifest.bytes != size:
        yield Damage(f"{path}: bytes: {manifest.bytes}; its shards have {size}", file=path)


def _damaged_rows(pack: Pack, shard: int, receipt: Receipt) -> Iterator[Damage]:
    """The fields of rows that do not have their checksum, of a shard with a damaged file that can still be opened."""
    stem = pack.stem(shard)
    try:
        bad = list(damaged_rows(pack.shard(shard), receipt))
    except (ReadError, OSError) as error:
        yield Damage(f"{stem}: its {receipt.rows} rows cannot be read ({error})", stem.name)
        return
    if not bad:
        yield Damage(f"{stem}: the damage is outside of its rows, which are whole", stem.name)
    yield from _rows(stem, bad)


def _check_rows(pack: Pack, shard: int, receipt: Receipt) -> Iterator[Damage]:
    """The wrong rows of a shard whose files are whole."""
    stem = pack.stem(shard)
    try:
        wrong = list(wrong_rows(pack.shard(shard), receipt))
    except (ReadError, OSError) as error:
        wrong = [WrongRow(f"its {receipt.rows} rows cannot be read ({error})")]
    yield from _rows(stem, wrong)


def _rows(stem: Path, wrong: Sequence[WrongRow]) -> Iterator[Damage]:
    """The first few rows by name, and the number of the others."""
    lines = first_of([wrong_row.message for wrong_row in wrong], MOST_ROWS_NAMED)
    for line, wrong_row in zip(lines, [*wrong[:MOST_ROWS_NAMED], WrongRow("")], strict=False):
        yield Damage(f"{stem}: {line}", stem.name, row=wrong_row.row, field=wrong_row.field)


def _unreadable(path: Path, error: Exception) -> Damage:
    if isinstance(error, OSError):
        return Damage(f"{path}: cannot be read ({error.strerror})", file=path)
    return Damage(str(error), file=path)
