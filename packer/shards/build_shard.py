"""Build a shard: a pure function from a shard spec and the raw files to files and a receipt."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

import cv2

from packer.decoding.rules import ImageRules
from packer.errors import TargetError
from packer.pixels.label_rules import LabelRules
from packer.publish.atomic import write_atomic
from packer.recipe.piece import Piece
from packer.recipe.shard_spec import ShardSpec
from packer.shards.columns import Columns, Memory, fresh
from packer.shards.formats import Arrays, writer
from packer.shards.rows import Row, RowMaker, RowTarget
from packer.shards.stamps import RowStamp, state_to_keep, write_stamps
from packer.shards.threads import Threads, in_threads, one_thread
from readers.contract import VERSION
from readers.contract.atomic import move_into_place, partial, sync_folder
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import SHARDS
from readers.contract.pixel_sums import Pixels
from readers.contract.receipt import SUFFIX, Receipt, Reject, ShardFile, Source

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
    raw: Path,
    out: Path,
    threads: Threads = one_thread,
    crashed: Mapping[int, str] = NO_CRASHES,
    mark: PairMark = unmarked,
    writing: Callable[[], None] = ignore_writing,
    memory: Memory = fresh,
) -> Receipt:
    """Decode the pieces of a shard, and write its files and its receipt below `out`: the same bytes for any `threads`.

    The pieces in `crashed` are not read: they become rejects with these reasons. `writing` is
    called when all rows are decoded.
    """
    indices = [index for index in range(len(spec.pieces)) if index not in crashed]
    columns, decoded = decode_pieces(spec, raw, indices, threads, mark, memory)
    made = dict(zip(indices, decoded, strict=True))
    made |= {index: _crashed_row(spec.pieces[index], raw, why) for index, why in crashed.items()}
    rows = [made[index] for index in range(len(spec.pieces))]
    receipt = _store(_receipt(spec, rows), columns, _kept(rows), spec.recipe.fields, out / SHARDS, writing)
    stamps = [
        RowStamp(piece.key, *piece.files, row.states, row.size) for piece, row in zip(spec.pieces, rows, strict=True)
    ]
    judged = judged_by(spec.recipe.image_rules, spec.recipe.label_rules)
    write_stamps(out, receipt.stem, receipt.recipe, judged, stamps)
    return receipt


def judged_by(image_rules: ImageRules, label_rules: LabelRules) -> str:
    """Return a fingerprint of everything that decides whether a pair is good by its headers."""
    return fingerprint([VERSION, image_rules.to_json(), label_rules.lossy])[:32]


def _crashed_row(piece: Piece, raw: Path, why: str) -> Row:
    """Return the row of a piece that crashes workers."""
    states = (state_to_keep(raw / piece.image), state_to_keep(raw / piece.label))
    return Row(Source(piece.key, "", ""), reject=why, states=states)


def decode_pieces(
    spec: ShardSpec, raw: Path, indices: Sequence[int], threads: Threads, mark: PairMark, memory: Memory
) -> tuple[Columns, list[Row]]:
    """Return the columns of a shard, filled at these indices, and a row for each of them."""
    columns = Columns(spec.recipe, spec.pieces, memory)
    maker = RowMaker(spec.recipe, raw)

    def fill(group: Sequence[int]) -> list[Row]:
        with mark(group[0]):
            return maker.fill([RowTarget(spec.pieces[index], *columns.rows(index)) for index in group])

    # Neighbouring pieces of the same files are decoded together.
    groups = [list(group) for _, group in groupby(indices, key=lambda index: spec.pieces[index].files)]
    cv2.setNumThreads(0)  # each thread has a picture of its own; more threads below would compete for the cores
    return columns, [row for rows in in_threads(fill, groups, threads) for row in rows]


def _receipt(spec: ShardSpec, rows: Sequence[Row]) -> Receipt:
    """Return the receipt without the files."""
    recipe = spec.recipe.fingerprint()
    sources = tuple(row.source for row in rows)
    rejects = tuple(Reject(row.source.key, row.reject) for row in rows if row.reject is not None)
    packed = [row for row in rows if row.reject is None]
    nothing = Pixels.none(len(spec.recipe.classes))
    receipt = Receipt(
        split=spec.split,
        fingerprint="",
        storage=spec.recipe.storage,
        recipe=recipe,
        sources=sources,
        rejects=rejects,
        files=(),
        crc32=tuple(row.crc32 for row in packed),
        looks=tuple(row.look for row in packed),
        pixels=functools.reduce(Pixels.__add__, (row.pixels for row in packed), nothing),
    )
    return replace(receipt, fingerprint=content_fingerprint(receipt))


def content_fingerprint(receipt: Receipt) -> str:
    """Return the fingerprint of a shard: of its recipe, sources and rejects."""
    facts = [
        receipt.recipe,
        receipt.split,
        [[source.key, source.image, source.label] for source in receipt.sources],
        [[reject.key, reject.reason] for reject in receipt.rejects],
    ]
    return fingerprint(facts)[:32]


def _kept(rows: Sequence[Row]) -> list[int]:
    """Return the indices of the rows that are packed."""
    return [index for index, row in enumerate(rows) if row.reject is None]


def _store(
    receipt: Receipt,
    columns: Columns,
    kept: Sequence[int],
    fields: Sequence[Field],
    folder: Path,
    writing: Callable[[], None],
) -> Receipt:
    """Write the files, then the receipt. An existing shard is not written again: published files never change."""
    existing = whole_shard(folder / (receipt.stem + SUFFIX))
    if existing is not None and existing.with_files(()) == receipt:
        return existing
    size = columns.nbytes
    writing()
    try:
        with partial(folder) as stem:
            files = _write(receipt, columns.kept(kept), fields, stem) if kept else []
            for file in files:
                move_into_place(stem.with_name(stem.name + file.suffix), folder / (receipt.stem + file.suffix))
        sync_folder(folder)
        complete = receipt.with_files(files)
        write_atomic(folder / (receipt.stem + SUFFIX), complete.to_text())
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        message = f"the shard {receipt.stem} of about {size:,} bytes cannot be written ({why})"
        raise TargetError(f"{folder}: {message}") from error
    return complete


def _write(receipt: Receipt, arrays: Arrays, fields: Sequence[Field], stem: Path) -> list[ShardFile]:
    """Write the files, whose names begin with `stem`."""
    digests = writer(receipt.storage).write(stem, arrays, fields)
    return [
        ShardFile(path.name.removeprefix(stem.name), path.stat().st_size, digest) for path, digest in digests.items()
    ]


def whole_shard(path: Path) -> Receipt | None:
    """Return the receipt at this path if all files of its shard have the expected sizes."""
    try:
        receipt = Receipt.load(path)
        whole = all(path.with_name(receipt.stem + file.suffix).stat().st_size == file.bytes for file in receipt.files)
    except (DamagedError, OSError):
        return None
    return receipt if whole and path.name == receipt.stem + SUFFIX else None
