"""Inspect a row of a pack: where it is stored, where it came from, what was done to it, and what it holds."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from packer.errors import BadPair
from packer.packs.recipe_words import placement_words
from packer.recipe.row_ref import files_of
from packer.shards.giant_rows import stored_statistics
from packer.shards.stamps import load_stamps_of
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.contract.manifest import ALL
from readers.contract.place import Place
from readers.contract.receipt import Receipt
from readers.contract.statistics import ClassStatistics, FieldStatistics, no_rows
from readers.contract.tiles import Size
from readers.find_key import find_key, rows_with_key
from readers.formats.shard import Shard
from readers.pack import Pack
from readers.stores.checksums import read_receipt


@dataclass(frozen=True)
class FieldOfRow:
    """A field of a row: the position of its bytes, its checksum, its source and its counts."""

    field: Field
    shape: tuple[int, ...]
    file: Path
    start: int
    stop: int
    crc32: int
    whole: bool
    """True if the bytes have the checksum of the receipt."""
    sources: tuple[str, ...]
    """The files or the place that it was read from; nothing if that is not known any more."""
    identity: str
    """A text that identifies the bytes that were read, such as their BLAKE3."""
    statistics: FieldStatistics

    @property
    def classes(self) -> list[tuple[str, int]]:
        """The classes that occur, with their pixels, the most frequent first."""
        if not isinstance(self.statistics, ClassStatistics) or self.field.classes is None:
            return []
        counts = zip(self.field.classes.names, self.statistics.classes, strict=True)
        return sorted(((name, pixels) for name, pixels in counts if pixels), key=lambda item: -item[1])


@dataclass(frozen=True)
class InspectedRow:
    """A row of a pack."""

    split: str
    key: str
    row: int
    """Its index in the split."""
    shard: str
    row_of_shard: int
    generation: int
    size: Size
    source_size: Size | None
    """The size of the upright picture before it was brought to the stored size; None if it is not known any more."""
    placement: tuple[str, ...]
    """The steps from the file to the stored row, in words."""
    note: str
    place: Place | None
    """The place of its pixels in the world; None if its files do not say it."""
    fields: tuple[FieldOfRow, ...]


def inspect_rows(out: str | PathLike[str], key: str, split: str | None = None) -> list[InspectedRow]:
    """Return the row with this key, one for each split that has one. Raises RequestError if there is none."""
    pack = Pack.open(Path(out))
    pack.select([field.name for field in pack.manifest.fields])
    every = pack.rows_of(split or ALL)
    rows = rows_with_key(pack, key, every)
    return [inspect_row(pack, row) for row in rows or [find_key(pack, key, every)]]


def inspect_row(pack: Pack, row: int) -> InspectedRow:
    """Return everything that is known of a row of an opened pack."""
    number, inside = pack.table.locate(row)
    shard, stem, split = pack.shard(number), pack.stem(number), pack.split_of(number).name
    receipt = read_receipt(pack.root, stem, pack.table.receipt(number))
    key = shard.key(inside)
    source_size, parts = _source(pack.root, receipt, key, len(pack.fields_of(number)))
    size = shard.size(inside)
    return InspectedRow(
        split=split,
        key=key,
        row=row - pack.rows_of(split).start,
        shard=stem.name,
        row_of_shard=inside,
        generation=pack.manifest.generation,
        size=size,
        source_size=source_size,
        placement=tuple(placement_words(pack.manifest.recipe, key, source_size, size)),
        note=next((note.text for note in receipt.notes if note.key == key), ""),
        place=receipt.places[inside] if receipt.places else None,
        fields=tuple(
            _field(field, shard, inside, receipt, key, part)
            for field, part in zip(pack.fields_of(number), parts, strict=True)
        ),
    )


def _field(field: Field, shard: Shard, row: int, receipt: Receipt, key: str, part: str) -> FieldOfRow:
    try:
        statistics = stored_statistics(shard, field, row)
    except (BadPair, DamagedError):  # its checksum shows that it is damaged
        statistics = no_rows([field])[field.name]
    path, start, stop = shard.position(field.name, row)
    crc32 = zlib.crc32(shard.stored(field, row).data)
    identities = next(source.identities for source in receipt.sources if source.key == key)
    return FieldOfRow(
        field=field,
        shape=field.row_shape(*shard.size(row)),
        file=path,
        start=start,
        stop=stop,
        crc32=crc32,
        whole=crc32 == receipt.crc32[field.name][row],
        sources=tuple(filter(None, files_of(part))),
        identity=identities[receipt.fields.index(field.name)],
        statistics=statistics,
    )


def _source(root: Path, receipt: Receipt, key: str, fields: int) -> tuple[Size | None, list[str]]:
    """Return the size of a row's picture before it was stored, and the place of each field, as far as stamps know."""
    unknown: tuple[None, list[str]] = None, [""] * fields
    stamps = load_stamps_of(root, receipt.stem)
    if stamps is None:
        return unknown
    keys = [line.partition("\0")[0] for line in stamps.text.split("\n")]
    if key not in keys:
        return unknown
    index = keys.index(key)
    parts = [part for part in stamps.parts[index].split("\0") if part]
    size = tuple(stamps.records["size"][index].tolist())
    return size if size[0] else None, parts if len(parts) == fields else unknown[1]
