"""The deep check of a shard: every row as readers return it, against its receipt and the class table."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.shards.row_sums import row_pixels
from readers.contract.classes import ClassTable
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT
from readers.contract.pixel_sums import Pixels
from readers.contract.receipt import Receipt
from readers.formats.shard import Shard


def row_crc32(shard: Shard, row: int) -> int:
    """The checksum of a row: image, then label."""
    crc32 = 0
    for field in shard.facts.fields:
        crc32 = zlib.crc32(shard.row(field, row).data, crc32)
    return crc32


def wrong_rows(shard: Shard, receipt: Receipt, classes: ClassTable) -> Iterator[tuple[str | None, str]]:
    """The key and a message for each wrong row of a shard whose files are whole; no key if its sums are wrong."""
    found = Pixels.none(len(classes))
    for row, key in enumerate(receipt.keys):
        for wrong in _wrong_row(shard, row, receipt):
            yield key, f"the row {key!r} {wrong}"
        image, label = (shard.row(field, row) for field in shard.facts.fields)
        counts = _label_counts(shard.facts.fields[1], label, classes)
        if counts is None:
            yield key, f"the row {key!r} has numbers in its label that are in none of {len(classes)} classes"
        elif not _from_0_to_1(image):
            yield key, f"the row {key!r} has numbers in its image that are not from 0 to 1"
        else:
            *of_classes, ignored = counts.tolist()
            found += row_pixels(image, of_classes, ignored)
    if found != receipt.pixels:
        yield None, "its counts of classes, or its sums of brightness, are not those in its receipt"


def _wrong_row(shard: Shard, row: int, receipt: Receipt) -> Iterator[str]:
    if (key := shard.key(row)) != receipt.keys[row]:
        yield f"has the key {key!r}"
    if row_crc32(shard, row) != receipt.crc32[row]:
        yield "does not have its checksum"


def _from_0_to_1(image: NDArray[Any]) -> bool:
    """Check that a floating-point image has only possible numbers; NaN is not one."""
    return image.dtype.kind != "f" or bool(((image >= 0) & (image <= 1)).all())


def _label_counts(field: Field, label: NDArray[Any], classes: ClassTable) -> NDArray[np.int64] | None:
    """Pixels of each class, then ignored pixels; None if the label has an impossible number."""
    if field.form == ONEHOT:
        planes = label.reshape(len(classes), -1)
        if planes.max() > 1 or planes.sum(axis=0, dtype=np.uint32).max() > 1:
            return None
        counts = planes.sum(axis=1, dtype=np.int64)
        return np.append(counts, planes.shape[1] - counts.sum())
    counts = np.bincount(label.reshape(-1), minlength=classes.ignore_index + 1)
    if counts[len(classes) : classes.ignore_index].any():
        return None
    return np.append(counts[: len(classes)], counts[classes.ignore_index])
