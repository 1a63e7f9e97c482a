"""A whole pack with fields of every kind and form, parts, rejects and notes: what the contract allows, and more than a
build writes. Its rows are made up."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.pixels.encode import encode
from packer.publish.generation import publish
from packer.publish.next_manifest import parts_of
from packer.shards.formats import writer
from packer.shards.kinds.by_field import check_row
from packer.shards.receipt_on_disk import content_fingerprint
from readers.contract.bits import pack_bits
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import END, KEY, RAW, TILED, VOLUME, ZSTD, Field, Sides, classes_field, picture_field
from readers.contract.fields import SIZE as SIZES
from readers.contract.json_entry import fingerprint
from readers.contract.kinds import BITS, IDS, INDEX, MULTILABEL, ONEHOT, PLANES, VALUES
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest, Split
from readers.contract.receipt import SUFFIX, Note, Receipt, Reject, RowInput, ShardFile
from readers.contract.shard_table import RECORD, field_bits, table_header, table_path
from readers.contract.statistics import no_rows, total

SIZE = 5, 7
CLASSES = ClassTable(tuple(SegClass(f"class{number}", (number, 7, 255)) for number in range(3)))
MANY = ClassTable(tuple(SegClass(f"kind{number}") for number in range(300)))
THINGS = ClassTable(tuple(SegClass(f"thing{number}") for number in range(9)))
FIELDS = (
    replace(picture_field("scan", "<u2", SIZE, ("red", "green", "blue", "near infrared")), range=(0, 65535)),
    picture_field("image", "|u1", SIZE),
    picture_field("signed", "<i2", SIZE, ("gray",)),
    picture_field("half", "<f2", SIZE, ("gray",)),
    replace(picture_field("single", "<f4", SIZE, ("a", "b")), range=None),
    replace(classes_field("label", INDEX, CLASSES, SIZE), optional=True),
    classes_field("fine", INDEX, MANY, SIZE),
    classes_field("onehot", ONEHOT, CLASSES, SIZE),
    Field("instance", IDS, INDEX, "<u4", SIZE),
    Field("panoptic", IDS, INDEX, "<u2", SIZE),
    Field("depth", VALUES, INDEX, "<f4", SIZE, fill="nan", optional=True),
    Field("height", VALUES, INDEX, "<i2", SIZE, fill=-1),
    Field("parts", MULTILABEL, BITS, "|u1", (2, *SIZE), classes=THINGS),
    Field("planes", MULTILABEL, PLANES, "|u1", (9, *SIZE), classes=THINGS),
)
NAMES = tuple(field.name for field in FIELDS)
PARTS = {
    "train": (NAMES, tuple(name for name in NAMES if name != "depth"), tuple(n for n in NAMES if n != "label")),
    "val": (NAMES,),
}
ROWS = 3
"""The rows of each shard. Each part has two shards, and the first shard of all has a reject and a note, too."""
RECIPE = {"made": "up"}
Row = dict[str, NDArray[Any]]


def encoded(fields: Sequence[Field] = FIELDS) -> tuple[Field, ...]:
    """Return the same fields with their rows as frames of Zstandard, but for two that stay raw."""
    return tuple(field if field.name in ("scan", "fine") else replace(field, encoding=ZSTD) for field in fields)


def tiled(fields: Sequence[Field] = FIELDS) -> tuple[Field, ...]:
    """Return the same fields with their rows in tiles, every second one as frames of Zstandard."""
    pairs = zip(fields, itertools.cycle(("tiles", "tiles-zstd")))
    return tuple(replace(field, encoding=encoding, tile=(2, 3)) for field, encoding in pairs)


def volumes(fields: Sequence[Field] = FIELDS) -> tuple[Field, ...]:
    """Return the same fields of volumes, every third one raw, as frames of Zstandard, and in tiles."""
    pairs = zip(fields, itertools.cycle((RAW, ZSTD, "tiles-zstd")))
    return tuple(
        replace(field, shape=(*field.planes, *VOLUME), encoding=encoding, tile=(2, 2, 3) if encoding in TILED else None)
        for field, encoding in pairs
    )


def native(fields: Sequence[Field]) -> tuple[Field, ...]:
    return tuple(replace(field, shape=(*field.planes, *[None] * len(field.sides))) for field in fields)


def make_row(field: Field, size: Sides, dice: np.random.Generator) -> NDArray[Any]:
    """Return numbers that the kind of the field allows."""
    shape = field.row_shape(*size)
    if field.form == BITS:
        return np.asarray(pack_bits(dice.integers(0, 2, (len(THINGS), *size)).astype(np.uint8)))
    if field.form == ONEHOT:
        return np.asarray(dice.integers(-1, 3, size) == np.arange(3).reshape(3, *[1] * len(size)), np.uint8)
    if field.form == PLANES:
        return dice.integers(0, 2, shape).astype(np.uint8)
    if field.classes is not None:
        classes = dice.integers(-1, len(field.classes), shape)
        return np.where(classes < 0, field.fill_number, classes).astype(field.dtype)
    if field.dtype[1] == "f":
        numbers: NDArray[Any] = dice.random(shape) if field.range else dice.normal(0, 1e6, shape)
    else:
        limits = np.iinfo(field.dtype)
        numbers = dice.integers(limits.min, limits.max, shape, endpoint=True)
    if field.kind in (IDS, VALUES):
        numbers = np.where(dice.random(shape) < 0.3, field.fill_number, numbers)
    return numbers.astype(field.dtype)


def write_any_pack(
    out: Path, storage: str, varied: bool = False, fields: Sequence[Field] = FIELDS
) -> dict[tuple[str, str], Row]:
    """Write the pack and return its rows in order. With `varied`, each row has its own size, as volumes have."""
    dice = np.random.default_rng(7)
    fields = native(fields) if varied else tuple(fields)
    for folder in (SHARDS, GENERATIONS):
        (out / folder).mkdir(parents=True)
    written: dict[tuple[str, str], Row] = {}
    receipts: list[Receipt] = []
    for split, parts in PARTS.items():
        for part, names in enumerate(parts):
            mine = [field for field in fields if field.name in names]
            for shard in range(2):
                sizes = [_sides(fields[0], dice) for _ in range(ROWS)]
                keys = [f"{split}/{part}/{shard}/{row}" for row in range(ROWS)]
                rows = [{field.name: make_row(field, size, dice) for field in mine} for size in sizes]
                receipts.append(
                    _write_shard(out, storage, split, mine, dict(zip(keys, rows, strict=True)), not receipts)
                )
                written |= {(split, key): row for key, row in zip(keys, rows, strict=True)}
    records = np.zeros(len(receipts), RECORD)
    records["end"] = np.cumsum([receipt.rows for receipt in receipts])
    records["bytes"] = [receipt.bytes for receipt in receipts]
    records["fields"] = [field_bits([field.name for field in fields], receipt.fields) for receipt in receipts]
    records["fingerprint"] = [receipt.fingerprint.encode() for receipt in receipts]
    records["receipt"] = [hashlib.sha256(receipt.to_text().encode()).hexdigest().encode() for receipt in receipts]
    table = table_header(len(receipts)) + records.tobytes()
    digest = hashlib.sha256(table).hexdigest()
    table_path(out, digest).write_bytes(table)
    splits = [
        Split(
            name,
            sum(receipt.rows for receipt in of),
            len(of),
            sum(len(receipt.rejects) for receipt in of),
            parts_of(of),
            total(fields, [receipt.statistics for receipt in of]),
        )
        for name in PARTS
        if (of := [receipt for receipt in receipts if receipt.split == name])
    ]
    size = sum(receipt.bytes for receipt in receipts)
    publish(out, Manifest(1, "2027-01-01T00:00:00Z", storage, fields, tuple(splits), size, digest, RECIPE))
    return written


def _sides(field: Field, dice: np.random.Generator) -> Sides:
    """Return the sides of the next row: known ones, or some below 9."""
    return field.size or tuple(int(dice.integers(1, 9)) for _ in field.sides)


def _write_shard(
    out: Path, storage: str, split: str, fields: Sequence[Field], rows: dict[str, Row], odd: bool
) -> Receipt:
    """Write the files and the receipt of a shard. An `odd` one also has a row that was rejected, and a note."""
    statistics = no_rows(fields)
    for row in rows.values():
        for field in fields:
            statistics[field.name] += check_row(field, row[field.name])
    keys = [*rows, *([f"{split}/rejected"] if odd else [])]
    receipt = Receipt(
        split=split,
        fingerprint="",
        storage=storage,
        recipe=fingerprint(RECIPE),
        fields=tuple(field.name for field in fields),
        sources=tuple(RowInput(key, *(f"{key} {field.name}" for field in fields)) for key in keys),
        rejects=(Reject(keys[-1], "is damaged"),) if odd else (),
        notes=(Note(keys[1], "2 polygons cover no pixel"),) if odd else (),
        counts={"objects painted": 3} if odd else {},
        files=(),
        crc32={field.name: tuple(crc32(_stored(field, row)) for row in rows.values()) for field in fields},
        looks=tuple(f"{crc32(row[fields[0].name].tobytes()):08x}flat" for row in rows.values()),
        statistics=statistics,
    )
    receipt = replace(receipt, fingerprint=content_fingerprint(receipt))
    stem = out / SHARDS / receipt.stem
    digests = writer(storage).write(stem, _columns(fields, rows), tuple(fields))
    files = [ShardFile(path.name.removeprefix(stem.name), path.stat().st_size, text) for path, text in digests.items()]
    complete = receipt.with_files(files)
    stem.with_name(stem.name + SUFFIX).write_text(complete.to_text())
    return complete


def _stored(field: Field, row: Row) -> bytes:
    numbers = row[field.name]
    return encode(field, None, numbers, b"").stored if field.is_encoded else numbers.tobytes()


def _columns(fields: Sequence[Field], rows: dict[str, Row]) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for field in fields:
        mine = [row[field.name] for row in rows.values()]
        if field.is_encoded:
            stored = [_stored(field, row) for row in rows.values()]
            columns[field.name] = np.frombuffer(b"".join(stored), np.uint8)
            columns[END.format(field.name)] = np.cumsum([len(each) for each in stored]).astype("<u8")
        elif field.native:
            columns[field.name] = np.concatenate([row.reshape(-1) for row in mine])
            columns[END.format(field.name)] = np.cumsum([row.size for row in mine]).astype("<u8")
        else:
            columns[field.name] = np.stack(mine)
    if fields[0].native:
        columns[SIZES] = np.array([row[fields[0].name].shape[1:] for row in rows.values()], "<u4")
    columns[KEY] = np.array([key.encode() for key in rows])
    return columns
