"""Build a shard: a pure function from a shard spec and what its source gives to files and a receipt."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import cv2

from packer.errors import TargetError
from packer.recipe.field_rule import judged
from packer.recipe.piece import text_of
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.shards.cell_files import write_cells
from packer.shards.columns import Columns, Memory, fresh
from packer.shards.formats import writer
from packer.shards.receipt_on_disk import content_fingerprint, whole_shard
from packer.shards.row_counts import CountedFields, write_counts
from packer.shards.row_table import RowTable
from packer.shards.rows import Row, RowMaker, RowTarget
from packer.shards.scratch import Scratch
from packer.shards.stamps import ShardStamps, write_stamps
from packer.shards.threads import Threads, in_threads, one_thread
from readers.contract.atomic import move_into_place, partial, put_in_place
from readers.contract.fields import Field
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt, RowInput, ShardFile

PairMark = Callable[[int], AbstractContextManager[None]]
"""Entered by the thread that works on the picture whose first piece has this index.

So another process can see which picture crashes or delays this one."""
NO_CRASHES: Mapping[int, str] = MappingProxyType({})


def unmarked(index: int) -> AbstractContextManager[None]:
    return nullcontext()


def ignore_writing() -> None:
    return None


def build_shard(
    spec: ShardSpec,
    source: Source,
    out: Path,
    threads: Threads = one_thread,
    crashed: Mapping[int, str] = NO_CRASHES,
    mark: PairMark = unmarked,
    writing: Callable[[], None] = ignore_writing,
    memory: Memory = fresh,
    rewrite: bool = False,
) -> Receipt:
    """Decode the pieces of a shard, and write its files and receipt below `out`: the same bytes for any `threads`.
    Call `sync_shards` once for many shards: until then a power cut may take the names of files, never their bytes.

    The pieces in `crashed` are not read: they become rejects with these reasons. `writing` is
    called when all rows are decoded. A shard that is there is not written again: published files never change.
    With `rewrite` it is, because its bytes are damaged.
    """
    every = range(len(spec.pieces))
    indices = [index for index in every if index not in crashed] if crashed else every
    with Scratch(out / SHARDS) as scratch:
        columns, table = decode_pieces(spec, source, indices, threads, mark, memory, scratch)
        for index, why in crashed.items():
            table.put(index, _crashed_row(spec, index, source, why))
        receipt = _receipt(spec, table)
        write_cells(out, receipt.stem, table.cells)
        existing = None if rewrite else whole_shard(out / SHARDS / (receipt.stem + SUFFIX))
        if existing is not None and existing.with_files(()) == receipt:
            receipt = existing
        else:
            receipt = _store(receipt, columns, table.kept, spec.fields, out / SHARDS, writing)
    rules = judged(spec.recipe.rules, spec.recipe.place, source.sides, spec.recipe.geometry.resolution)
    text = text_of(spec.pieces)
    write_stamps(out, ShardStamps(receipt.stem, receipt.recipe, rules, source.kind, table.stamps, text))
    write_counts(out, receipt.stem, table.counts)
    return receipt


def _crashed_row(spec: ShardSpec, index: int, source: Source, why: str) -> Row:
    """Return the row of a piece that crashes workers."""
    piece = spec.pieces[index]
    return Row(RowInput(piece.key, *("" for _ in spec.fields)), reject=why, state=source.states([piece.ref])[0])


def decode_pieces(
    spec: ShardSpec,
    source: Source,
    indices: Sequence[int],
    threads: Threads,
    mark: PairMark,
    memory: Memory,
    scratch: Scratch,
) -> tuple[Columns, RowTable]:
    """Return the columns of a shard, filled at these indices, and the table of its rows."""
    columns = Columns(spec, memory, scratch)
    counted = CountedFields.of(spec.recipe.fields, spec.fields)
    table = RowTable(spec.pieces, spec.fields, counted, source.states([]).shape[1])
    maker = RowMaker(spec.recipe, spec.fields, source, scratch)
    starts = _pictures(spec, indices)
    source.expect(spec.pieces[indices[start]].ref for start in starts[:-1])

    def fill(picture: int) -> None:
        group = indices[starts[picture] : starts[picture + 1]]
        with mark(group[0]):
            rows = maker.fill([RowTarget(spec.pieces[index], columns, index) for index in group])
        for index, row in zip(group, rows, strict=True):
            table.put(index, row)

    cv2.setNumThreads(0)  # each thread has a picture of its own; more threads below would compete for the cores
    in_threads(fill, range(len(starts) - 1), threads)
    return columns, table


def _pictures(spec: ShardSpec, indices: Sequence[int]) -> Sequence[int]:
    """Return where in `indices` each picture begins, and the end: pieces of the same row are decoded together."""
    refs = [spec.pieces[index].ref for index in indices]
    starts = [number for number in range(len(refs)) if number == 0 or refs[number] != refs[number - 1]]
    return array("q", [*starts, len(refs)])


def _receipt(spec: ShardSpec, table: RowTable) -> Receipt:
    """Return the receipt without the files."""
    receipt = Receipt(
        split=spec.split,
        fingerprint="",
        storage=spec.recipe.storage,
        recipe=spec.recipe.fingerprint(),
        fields=tuple(field.name for field in spec.fields),
        sources=table.sources,
        rejects=table.rejects,
        notes=table.notes,
        counts=table.sums,
        files=(),
        crc32=table.crc32,
        looks=table.looks,
        statistics=table.statistics,
        psnr=table.psnr,
        places=table.places,
    )
    return replace(receipt, fingerprint=content_fingerprint(receipt))


def _store(
    receipt: Receipt,
    columns: Columns,
    kept: Sequence[int],
    fields: Sequence[Field],
    folder: Path,
    writing: Callable[[], None],
) -> Receipt:
    """Write the files, then the receipt."""
    size = columns.nbytes
    writing()
    try:
        with partial(folder) as stem:
            digests = writer(receipt.storage).write(stem, columns.kept(kept), fields) if kept else {}
            files = []
            for path, digest in digests.items():
                suffix = path.name.removeprefix(stem.name)
                files.append(ShardFile(suffix, move_into_place(path, folder / (receipt.stem + suffix)), digest))
        complete = receipt.with_files(files)
        put_in_place(folder / (receipt.stem + SUFFIX), complete.to_text())
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        message = f"the shard {receipt.stem} of about {size:,} bytes cannot be written ({why})"
        raise TargetError(f"{folder}: {message}") from error
    return complete
