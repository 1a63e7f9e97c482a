"""`packer which`: find the rows of packs that a raw file went into, by its bytes and by its path."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from packer.errors import InputError
from packer.packs.generations import Generation, list_generations
from packer.packs.staged_copies import source_of
from packer.packs.stored import seen
from packer.publish.bucket import with_stamps
from packer.recipe.row_ref import files_of
from packer.shards.stamps import load_stamps_of
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import SHARDS, is_pack
from readers.contract.receipt import Receipt, shard_stem
from readers.contract.regular_files import digest_raw
from readers.contract.shard_table import ShardTable
from readers.stores.checksums import read_receipt
from readers.stores.open_store import is_url

_PLACE = re.compile(r"(?:\[[^\[\]/]*\]|@[0-9]+(?:\+[0-9]+)?/.*)$", re.DOTALL)
"""The place of a row in a file: a slice or an array, or the bytes and the name of a member."""
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".npy")
"""The files of a folder whose rows are known by their bytes alone. With a slide or a shapefile, other files count."""
LEVELS = 3
"""Packs are looked for in a folder and in its folders, down to this level."""


@dataclass(frozen=True)
class RowOfFile:
    """A row of a pack that a raw file went into."""

    pack: str
    generations: tuple[int, ...]
    split: str
    key: str
    fields: tuple[str, ...]
    """The fields that were read from the file."""
    same_bytes: bool | None
    """False if a file with this path was read that had other bytes; None if the file is gone, or if its rows are not
    known by its bytes: rows of a volume, an archive, or a picture in several files."""
    path: str
    """The path that was read, below the raw folder; empty if it is not known any more."""


def refuse(damage: ReadError) -> None:
    raise damage


def rows_of_file(
    file: str | PathLike[str], folders: Sequence[str | PathLike[str]], damaged: Callable[[ReadError], object] = refuse
) -> list[RowOfFile]:
    """Return the rows that a file went into, in every kept generation of the packs in these folders or at these URLs.

    A file that exists is found by its bytes, so also where it had another path. A file that is gone is found by its
    path, which must end as it did below the raw folder. `damaged` is called with what cannot be read and may have the
    file; by default it is raised. Raises InputError if there is no pack.
    """
    path = Path(file)
    digest = digest_raw(path) if path.is_file() else None
    packs = {source_of(pack): pack for folder in folders for pack in _packs(folder)}
    if not packs:
        raise InputError(
            f"{', '.join(str(folder) for folder in folders)}: there is no pack here, nor {LEVELS} levels below"
        )
    sought = _SoughtFile(path.as_posix(), digest)
    return [row for pack in packs.values() for row in _rows(pack, sought, damaged)]


def _packs(folder: str | PathLike[str]) -> Iterator[str]:
    """Yield the packs in a folder, which may be a pack itself."""
    if is_url(folder):
        yield fspath(folder)
        return
    level = [Path(folder)]
    for _ in range(LEVELS + 1):
        packs = [path for path in level if is_pack(path)]
        yield from map(str, packs)
        others = [path for path in level if path not in packs and path.is_dir()]
        folders = [path for other in others for path in other.iterdir() if path.is_dir()]
        level = sorted(path for path in folders if is_pack(path) or not path.is_symlink())


Match: TypeAlias = "tuple[str, tuple[str, ...], bool | None, str]"
"""The key of a row, its fields from the file, whether the bytes are the same, and the path that was read."""


@dataclass(frozen=True)
class _SoughtFile:
    """The file that is looked for."""

    path: str
    digest: str | None
    """Its BLAKE3; None if it is gone."""

    def has_path(self, part: str) -> bool:
        """Return whether a part of a row is of this file, a slice or an array in it, or a member of this archive."""
        files = [_PLACE.sub("", file) for file in files_of(part)]
        return any(file and (self.path == file or self.path.endswith(f"/{file}")) for file in files)

    def has_bytes(self, identity: str) -> bool:
        return self.digest is not None and self.digest in identity


def _rows(pack: str, sought: _SoughtFile, damaged: Callable[[ReadError], object]) -> Iterator[RowOfFile]:
    """Yield the rows of a pack that a file went into. A shard of many generations is looked at once."""
    with seen(pack, with_stamps) as (root, _):
        shards: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for generation in list_generations(root):
            try:
                for shard in _shards(root, generation):
                    shards[shard].append(generation.number)
            except ReadError as error:
                damaged(error)
        for (split, fingerprint, digest), numbers in sorted(shards.items()):
            stem = root / SHARDS / shard_stem(split, fingerprint)
            try:
                receipt = read_receipt(root, stem, digest)
            except ReadError as error:
                damaged(error)
                continue
            for key, fields, same, path in _matches(root, receipt, sought):
                yield RowOfFile(pack, tuple(sorted(numbers)), split, key, fields, same, path)


def _shards(root: Path, generation: Generation) -> Iterator[tuple[str, str, str]]:
    """Yield split, fingerprint and the SHA-256 of the receipt of each shard of a generation."""
    manifest = generation.manifest
    if manifest is None:
        raise DamagedError(generation.damage)
    table = ShardTable.open(root, manifest)
    splits = (split.name for split in manifest.splits for _ in range(split.shards))
    for number, split in enumerate(splits):
        yield split, table.fingerprint(number), table.receipt(number)


def _matches(root: Path, receipt: Receipt, sought: _SoughtFile) -> Iterator[Match]:
    """Yield a match for each row of a shard that was read from the file."""
    stamps = load_stamps_of(root, receipt.stem)
    lines = [] if stamps is None else [line.split("\0") for line in stamps.text.split("\n")]
    parts_of = {line[0]: [part for part in line[1:] if part] for line in lines}
    for source in receipt.sources:
        parts = parts_of.get(source.key, [])
        parts = parts if len(parts) == len(receipt.fields) else [""] * len(receipt.fields)
        identified = list(zip(receipt.fields, source.identities, parts, strict=True))
        same = [(field, part) for field, identity, part in identified if sought.has_bytes(identity)]
        matches = same or [(field, part) for field, _, part in identified if sought.has_path(part)]
        if matches:
            is_known = sought.digest is not None and stamps is not None and stamps.source == "folder"
            is_other = is_known and all(_is_one_file(part) for _, part in matches)
            is_same = True if same else False if is_other else None
            yield source.key, tuple(field for field, _ in matches), is_same, files_of(matches[0][1])[0]


def _is_one_file(part: str) -> bool:
    """Return whether a field was read from a single file, whose bytes it is known by."""
    return len(files_of(part)) == 1 and part.lower().endswith(_PICTURES)
