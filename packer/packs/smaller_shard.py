"""Write a shard again without some of its rows, from what is stored: its other rows keep their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.packs.verify_rows import damaged_rows
from packer.publish.atomic import target_errors
from packer.publish.target import sync_shards
from packer.shards.cell_files import write_cells
from packer.shards.formats import ShardArrays, writer
from packer.shards.giant_rows import stored_statistics
from packer.shards.receipt_on_disk import content_fingerprint, whole_shard
from packer.shards.scratch import Scratch, mapped
from packer.shards.stamps import ShardStamps, load_stamps_of, write_stamps
from packer.shards.stored_cells import stored_cells
from readers.contract import giant
from readers.contract.atomic import move_into_place, partial, put_in_place
from readers.contract.cells import is_counted
from readers.contract.errors import DamagedError
from readers.contract.fields import END, KEY, SIZE, Field
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, ShardFile
from readers.contract.statistics import Statistics, no_rows
from readers.formats.shard import Shard

IsForgotten = Callable[[str], bool]
"""Returns whether the row with this key is left out."""


def write_without(out: Path, shard: Shard, fields: Sequence[Field], receipt: Receipt, left_out: IsForgotten) -> Receipt:
    """Write a shard below `out` without the rows and the rejects of these keys. Return its receipt.

    The receipt is the one that a build of the other rows writes, but for the sums of what a source has counted.
    Raises DamagedError if one of the other rows is damaged: its bytes would get new checksums.
    """
    _check(out, shard, receipt, left_out)
    kept = [row for row, key in enumerate(receipt.keys) if not left_out(key)]
    statistics = _statistics(shard, fields, kept)
    smaller = replace(
        receipt,
        sources=tuple(source for source in receipt.sources if not left_out(source.key)),
        rejects=tuple(reject for reject in receipt.rejects if not left_out(reject.key)),
        notes=tuple(note for note in receipt.notes if not left_out(note.key)),
        files=(),
        crc32={name: _chosen(sums, kept) for name, sums in receipt.crc32.items()},
        looks=_chosen(receipt.looks, kept),
        statistics=statistics,
        psnr={name: _chosen(values, kept) for name, values in receipt.psnr.items()},
        places=_chosen(receipt.places, kept),
        digest="",
    )
    smaller = replace(smaller, fingerprint=content_fingerprint(smaller))
    folder = out / SHARDS
    existing = whole_shard(folder / (smaller.stem + SUFFIX))
    if existing is not None and existing.with_files(()) == smaller:
        return existing
    _write_side_files(out, shard, fields, receipt, smaller, kept)
    with target_errors(folder), Scratch(folder) as scratch, partial(folder) as stem:
        files = _write(stem, smaller.storage, _arrays(shard, fields, kept, scratch), fields) if kept else []
        for file in files:
            move_into_place(stem.with_name(stem.name + file.suffix), folder / (smaller.stem + file.suffix))
        complete = smaller.with_files(files)
        put_in_place(folder / (complete.stem + SUFFIX), complete.to_text())
    sync_shards(out)
    return complete


def _check(out: Path, shard: Shard, receipt: Receipt, left_out: IsForgotten) -> None:
    """Compare the keys of all rows, and the checksums of those that stay, with the receipt."""
    wrong = [row.message for row in damaged_rows(shard, receipt) if row.row is None or not left_out(row.row)]
    stored = [shard.key(row) for row in range(receipt.rows)]
    wrong += [
        f"the row {key!r} has the key {name!r}" for key, name in zip(receipt.keys, stored, strict=True) if key != name
    ]
    if wrong:
        raise DamagedError(f"{shard.path}: {wrong[0]}; packer repair {out} builds this shard again")


def _chosen(values: Sequence[Any], rows: Sequence[int]) -> tuple[Any, ...]:
    """Return what belongs to these rows; nothing if no row has any."""
    return tuple(values[row] for row in rows) if values else ()


def _statistics(shard: Shard, fields: Sequence[Field], rows: Sequence[int]) -> Statistics:
    statistics = no_rows(fields)
    for row in rows:
        for field in fields:
            statistics[field.name] += stored_statistics(shard, field, row)
    return statistics


def _write(stem: Path, storage: str, arrays: ShardArrays, fields: Sequence[Field]) -> list[ShardFile]:
    digests = writer(storage).write(stem, arrays, fields)
    return [
        ShardFile(path.name.removeprefix(stem.name), path.stat().st_size, digest) for path, digest in digests.items()
    ]


def _arrays(shard: Shard, fields: Sequence[Field], rows: Sequence[int], scratch: Scratch) -> ShardArrays:
    """Return the columns of these rows, as a build of them has them."""
    columns: dict[str, NDArray[Any]] = {}
    for field in fields:
        ends = np.cumsum([len(shard.stored(field, row)) for row in rows]).astype("<u8")
        stored = (shard.stored(field, row) for row in rows)
        if ends[-1] > giant.GIANT:
            numbers = _in_file(stored, scratch.path(field.name))
        else:
            numbers = np.concatenate([row.copy() for row in stored])
        if field.is_encoded:
            columns[field.name], columns[END.format(field.name)] = numbers, ends
        elif field.native:
            columns[field.name] = numbers.view(field.dtype)
            columns[END.format(field.name)] = ends // np.uint64(columns[field.name].itemsize)
        else:
            columns[field.name] = numbers.view(field.dtype).reshape(len(rows), *field.row_shape(*shard.size(rows[0])))
    if fields[0].native:
        columns[SIZE] = np.array([shard.size(row) for row in rows], "<u4")
    columns[KEY] = np.array([shard.key(row).encode() for row in rows], np.bytes_)
    return columns


def _in_file(stored: Iterable[NDArray[np.uint8]], path: Path) -> NDArray[np.uint8]:
    """Return rows that may not fit into memory back to back: a map of a new file."""
    with path.open("wb") as file:
        for row in stored:
            file.write(row.data)
    return mapped(path)


def _write_side_files(
    out: Path, shard: Shard, fields: Sequence[Field], before: Receipt, after: Receipt, kept: Sequence[int]
) -> None:
    """Write the cells of the rows, and their stamps, so that the next build does not read them again.

    Sums that a source counted cannot be taken apart. Then the stamps belong to no recipe: the next build reads the
    rows of this shard again, and counts them.
    """
    counted = [field for field in fields if is_counted(field)]
    cells = {field: list(stored_cells(shard, field)) for field in counted}
    write_cells(out, after.stem, {field: [rows[row] for row in kept] for field, rows in cells.items()})
    stamps = load_stamps_of(out, before.stem)
    if stamps is None:
        return
    left = {source.key for source in after.sources}
    lines = stamps.text.split("\n")
    indices = [index for index, line in enumerate(lines) if line.partition("\0")[0] in left]
    if indices:
        text = "\n".join(lines[index] for index in indices)
        facts = "" if after.counts else stamps.recipe, stamps.judged, stamps.source
        write_stamps(out, ShardStamps(after.stem, *facts, stamps.records[indices], text))
