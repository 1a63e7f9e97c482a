"""Verifying: every byte of the current generation against its checksum, from the manifest down; damage by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packer.packs.verify_rows import row_crc32, wrong_rows
from packer.shards.build_shard import content_fingerprint
from readers.checksums import damaged_files, read_receipt
from readers.contract.errors import DamagedError, ReadError
from readers.contract.files import plain_file, sha256
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import GENERATIONS, MANIFEST, Manifest, generation_path
from readers.contract.pixel_sums import Pixels
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path
from readers.formats import shard_paths
from readers.formats.column import ShardFacts
from readers.pack import Pack

MOST_ROWS_NAMED = 10


def verify(root: Path, workers: int, progress: Callable[[int], None], deep: bool = False) -> list[str]:
    """Everything that is wrong with the pack at `root`, one line each; `progress` hears of the bytes done.

    Checksums tell that files are as they were made; `deep` also looks at rows and labels as readers get them.
    """
    manifest = Manifest.load(root)
    damage = [*_check_generations(root, manifest), *_check_table(root, manifest)]
    if damage:
        return damage
    pack = Pack(root, manifest)

    def check(shard: int) -> tuple[Receipt | None, list[str]]:
        try:
            receipt = read_receipt(root, pack.stem(shard), pack.table.receipt(shard))
            lies = list(contradictions(pack, shard, receipt))
            damage = list(_check_shard(pack, shard, receipt))
            if deep and receipt.rows and not lies and not damage:
                damage = list(_check_rows(pack, shard, receipt))
            found = None if lies else receipt, [*lies, *damage]
        except DamagedError as error:
            found = None, [str(error)]
        progress(pack.table.bytes(shard))
        return found

    with ThreadPoolExecutor(workers) as pool:
        checked = list(pool.map(check, range(len(pack.table))))
    damage = [line for _, lines in checked for line in lines]
    receipts = [receipt for receipt, _ in checked if receipt is not None]
    return damage if len(receipts) < len(checked) else [*damage, *_wrong_sums(pack, receipts)]


def _check_generations(root: Path, manifest: Manifest) -> Iterator[str]:
    """Earlier manifests must be whole, and the current one must be among them."""
    for path in sorted((root / GENERATIONS).glob("*.json")):
        try:
            Manifest.read(root, path)
        except (ReadError, OSError) as error:
            yield _told(path, error)
    kept = generation_path(root, manifest.generation)
    try:
        same = Manifest.read(root, kept) == manifest
    except (ReadError, OSError):
        same = False
    if not same:
        yield f"{kept}: is missing or differs from {root / MANIFEST}, of which it is a copy"


def _check_table(root: Path, manifest: Manifest) -> Iterator[str]:
    path = table_path(root, manifest.table)
    try:
        found = sha256(plain_file(root, path))
    except (OSError, DamagedError) as error:
        yield _told(path, error)
        return
    if found != manifest.table:
        yield f"{path}: its SHA-256 is {found}, the manifest says {manifest.table}"


def _check_shard(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """The files by the receipt's checksums; where one is damaged, its rows by theirs."""
    stem = pack.stem(shard)
    damage = list(damaged_files(pack.root, stem, receipt))
    yield from damage
    if damage:
        yield from _name_rows(pack, shard, receipt)


def contradictions(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """Where a receipt says otherwise than the shard table, the manifest or itself: each may be whole, and lie."""
    stem, manifest = pack.stem(shard), pack.manifest
    facts = ShardFacts(receipt.rows, manifest.fields)
    paths = shard_paths(manifest.storage)(stem, facts) if receipt.rows else []
    for what, found, expected in (
        ("split", receipt.split, pack.split_of(shard).name),
        ("fingerprint", receipt.fingerprint, pack.table.fingerprint(shard)),
        ("fingerprint of its pairs", content_fingerprint(receipt), receipt.fingerprint),
        ("storage", receipt.storage, manifest.storage),
        ("recipe", receipt.recipe, fingerprint(manifest.recipe)),
        ("rows", receipt.rows, pack.table.rows(shard)),
        ("rows by their keys", len(receipt.keys), receipt.rows),
        ("bytes", receipt.bytes, pack.table.bytes(shard)),
        ("classes", len(receipt.pixels.classes), len(manifest.classes)),
        ("files", sorted(stem.name + one.suffix for one in receipt.files), sorted(path.name for path in paths)),
    ):
        if found != expected:
            yield f"{stem}{SUFFIX}: says {found!r} for its {what}; expected {expected!r}"


def _wrong_sums(pack: Pack, receipts: Sequence[Receipt]) -> Iterator[str]:
    """What the manifest says of all shards together."""
    manifest, path = pack.manifest, pack.root / MANIFEST
    for split, shards, _ in pack.splits():
        members = receipts[shards.start : shards.stop]
        found = sum(one.rows for one in members), sum(len(one.rejects) for one in members)
        if found != (split.rows, split.rejects):
            told = f"{split.rows} rows and {split.rejects} rejects; its shards have {found[0]} and {found[1]}"
            yield f"{path}: split {split.name!r}: {told}"
        nothing = Pixels.none(len(manifest.classes))
        if split.pixels != functools.reduce(Pixels.__add__, (one.pixels for one in members), nothing):
            yield f"{path}: split {split.name!r}: pixels: are not the sum of those of its shards"
    if manifest.bytes != sum(one.bytes for one in receipts):
        yield f"{path}: bytes: {manifest.bytes}; its shards have {sum(one.bytes for one in receipts)}"


def _name_rows(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """Which samples of a damaged shard are touched, as far as it can still be opened."""
    try:
        opened = pack.shard(shard)
        bad = [key for row, key in enumerate(receipt.keys) if row_crc32(opened, row) != receipt.crc32[row]]
    except (ReadError, OSError) as error:
        yield f"{pack.stem(shard)}: its {receipt.rows} rows cannot be read ({error})"
        return
    if not bad:
        yield f"{pack.stem(shard)}: the damage lies outside of its rows, which are whole"
    yield from _first(pack.stem(shard), [f"the sample {key!r} is damaged" for key in bad])


def _check_rows(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """What is wrong with the rows of a shard whose files are whole."""
    try:
        wrong = list(wrong_rows(pack.shard(shard), receipt, pack.manifest.classes))
    except (ReadError, OSError) as error:
        wrong = [f"its {receipt.rows} rows cannot be read ({error})"]
    yield from _first(pack.stem(shard), wrong)


def _first(stem: Path, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"{stem}: {line}" for line in lines[:MOST_ROWS_NAMED])
    if len(lines) > MOST_ROWS_NAMED:
        yield f"{stem}: and {len(lines) - MOST_ROWS_NAMED} more"


def _told(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{path}: cannot be read ({error.strerror})"
    return str(error)
