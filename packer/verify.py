"""Verifying: every byte of the current generation against its checksum, from the manifest down; damage by name."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packer.shard import sha256
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import GENERATIONS, MANIFEST, Manifest, generation_path
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.table import table_path
from readers.formats.shard import Shard
from readers.pack import Pack

MOST_ROWS_NAMED = 10


def verify(root: Path, workers: int, progress: Callable[[int], None]) -> list[str]:
    """Everything that is wrong with the pack at `root`, one line each; `progress` hears of the bytes done."""
    manifest = Manifest.load(root)
    damage = [*_check_generations(root, manifest), *_check_table(root, manifest)]
    if damage:
        return damage
    pack = Pack(root, manifest)

    def check(shard: int) -> list[str]:
        found = list(_check_shard(pack, shard))
        progress(pack.table.bytes(shard))
        return found

    with ThreadPoolExecutor(workers) as pool:
        return [line for found in pool.map(check, range(len(pack.table))) for line in found]


def _check_generations(root: Path, manifest: Manifest) -> Iterator[str]:
    """Earlier manifests must be whole, and the current one must be among them."""
    for path in sorted((root / GENERATIONS).glob("*.json")):
        try:
            Manifest.from_text(path.read_text(encoding="utf-8"), path)
        except (DamagedError, OSError, UnicodeDecodeError) as error:
            yield _told(path, error)
    kept = generation_path(root, manifest.generation)
    if not kept.is_file() or kept.read_bytes() != (root / MANIFEST).read_bytes():
        yield f"{kept}: is missing or differs from {root / MANIFEST}, of which it is a copy"


def _check_table(root: Path, manifest: Manifest) -> Iterator[str]:
    path = table_path(root, manifest.table)
    try:
        found = sha256(path)
    except OSError as error:
        yield _told(path, error)
        return
    if found != manifest.table:
        yield f"{path}: its SHA-256 is {found}, the manifest says {manifest.table}"


def _check_shard(pack: Pack, shard: int) -> Iterator[str]:
    """The receipt by the table's checksum, the files by the receipt's; where a file is damaged, its rows by theirs."""
    stem = pack.stem(shard)
    path = stem.with_name(stem.name + SUFFIX)
    try:
        text = path.read_bytes()
        if hashlib.sha256(text).hexdigest() != pack.table.receipt(shard):
            raise DamagedError(f"{path}: its SHA-256 is not the one in the shard table")
        receipt = Receipt.from_text(text.decode(), path)
    except (OSError, UnicodeDecodeError, DamagedError) as error:
        yield _told(path, error)
        return
    broken = False
    for file in receipt.files:
        path = stem.with_name(stem.name + file.suffix)
        try:
            size = path.stat().st_size
            if size != file.bytes:
                raise DamagedError(f"{path}: has {size} bytes, its receipt says {file.bytes}")
            if sha256(path) != file.sha256:
                raise DamagedError(f"{path}: its SHA-256 is not the one in its receipt")
        except (OSError, DamagedError) as error:
            broken = True
            yield _told(path, error)
    if broken:
        yield from _name_rows(pack, shard, receipt)


def _name_rows(pack: Pack, shard: int, receipt: Receipt) -> Iterator[str]:
    """Which samples of a damaged shard are touched, as far as it can still be opened."""
    try:
        opened = pack.shard(shard)
        bad = [key for row, key in enumerate(receipt.keys) if _crc32(opened, row) != receipt.crc32[row]]
    except (ReadError, OSError) as error:
        yield f"{pack.stem(shard)}: its {receipt.rows} rows cannot be read ({error})"
        return
    if not bad:
        yield f"{pack.stem(shard)}: the damage lies outside of its rows, which are whole"
    for key in bad[:MOST_ROWS_NAMED]:
        yield f"{pack.stem(shard)}: the sample {key!r} is damaged"
    if len(bad) > MOST_ROWS_NAMED:
        yield f"{pack.stem(shard)}: and {len(bad) - MOST_ROWS_NAMED} more samples"


def _crc32(shard: Shard, row: int) -> int:
    """The checksum of a row: image, then label."""
    crc32 = 0
    for field in shard.facts.fields:
        crc32 = zlib.crc32(shard.row(field, row).data, crc32)
    return crc32


def _told(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{path}: cannot be read ({error.strerror})"
    return str(error)
