"""Targets of fuzzing for fields of ids, values and overlapping classes: any file in the place of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drills.band_files import array_file, blocks_tiff
from drills.fuzz_pictures import ARRAYS, MOST_PIXELS, sealed_png, seeds
from drills.fuzz_target import Target
from packer.errors import BadPair
from packer.pixels.id_codec import IdCodec
from packer.pixels.multilabel_codec import MultilabelCodec
from packer.pixels.number_rules import ID_CODECS, IdRules, MultilabelRules, ValueRules
from packer.pixels.value_codec import ValueCodec, value_fill
from packer.shards.kinds.by_field import check_row
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field
from readers.contract.kinds import BITS, IDS, INDEX, KINDS, MULTILABEL, VALUES

Read = Callable[[bytes], NDArray[Any]]
CLASSES = tuple(ClassTable(tuple(SegClass(f"part{number}") for number in range(count))) for count in (1, 3, 8))


def numbers() -> Iterable[Target]:
    """Yield a target for each kind. What is read must be a row that a check of the pack accepts."""
    gray = np.arange(63).reshape(7, 9)
    more = [*seeds("png"), *seeds("tiff"), *seeds(ARRAYS)]
    for dtype in ("|u1", "<u2", "<i2", "<f4"):
        more += [array_file(gray.astype(dtype)), blocks_tiff(gray[..., None].astype(dtype))]
    for kind, ways in ((IDS, _ids()), (VALUES, _values()), (MULTILABEL, _classes())):
        yield Target(kind, tuple(more), _parser(list(ways)))


def _parser(ways: Sequence[tuple[Field, Read]]) -> Callable[[bytes], None]:
    def parse(data: bytes) -> None:
        data = sealed_png(data) if data.startswith(b"\x89PNG") else data
        for field, read in ways:
            try:
                found = read(data)
            except BadPair:
                continue
            assert found.dtype == field.dtype
            assert found.ndim == len(field.shape)
            check_row(field, found)

    return parse


def _ids() -> Iterable[tuple[Field, Read]]:
    for dtype in KINDS[IDS].dtypes[INDEX]:
        for codec in ID_CODECS:
            yield Field("ids", IDS, INDEX, dtype, (None, None)), IdCodec(IdRules(codec), dtype, MOST_PIXELS).read


def _values() -> Iterable[tuple[Field, Read]]:
    for dtype in KINDS[VALUES].dtypes[INDEX]:
        for rules in (ValueRules(), ValueRules(7), *([ValueRules(0, 0.001)] if dtype[1] == "f" else [])):
            fill = value_fill(rules, dtype)
            field = Field("values", VALUES, INDEX, dtype, (None, None), fill=fill)
            yield field, ValueCodec(rules, dtype, fill, MOST_PIXELS).read


def _classes() -> Iterable[tuple[Field, Read]]:
    for table in CLASSES:
        field = Field("parts", MULTILABEL, BITS, "|u1", (1, None, None), classes=table)
        yield field, MultilabelCodec(MultilabelRules(one_file=True), table, MOST_PIXELS).read
        yield field, _of_files(MultilabelCodec(MultilabelRules(), table, MOST_PIXELS), len(table))


def _of_files(codec: MultilabelCodec, classes: int) -> Read:
    """Return a reader of a row whose last class has a file. The first has a mask, the others none."""
    others: list[bytes | NDArray[Any]] = [np.ones((7, 9), np.uint8), *[b""] * classes]
    return lambda data: codec.read((*others[: classes - 1], data))
