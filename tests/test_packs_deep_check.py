"""The deep check of rows of every kind of field: exact statistics, and impossible numbers are named."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.packs.verify_rows import wrong_rows
from packer.shards.formats import writer
from packer.shards.kinds import classes
from packer.shards.kinds.by_field import check_row
from readers.contract.bits import pack_bits
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.kinds import BITS, IDS, INDEX, MULTILABEL, ONEHOT, PLANES, VALUES
from readers.contract.onehot import expand
from readers.contract.receipt import Receipt, RowInput
from readers.contract.statistics import (
    UNIT_BITS,
    ClassStatistics,
    IdStatistics,
    PictureStatistics,
    ValueStatistics,
    no_rows,
)
from readers.formats import opener
from readers.formats.column import ShardFacts

SIZE = 4, 5
TABLE = ClassTable(tuple(SegClass(f"class{number}") for number in range(9)))
SCAN = picture_field("scan", "<i2", SIZE, ("near", "far"))
INSTANCE = Field("instance", IDS, INDEX, "<u4", SIZE)
DEPTH = Field("depth", VALUES, INDEX, "<f4", SIZE, fill="nan")
HEIGHT = Field("height", VALUES, INDEX, "<i2", SIZE, fill=-1)
PARTS = Field("parts", MULTILABEL, BITS, "|u1", (2, *SIZE), classes=TABLE)
THINGS = Field("things", MULTILABEL, PLANES, "|u1", (9, *SIZE), classes=TABLE)
LABEL = classes_field("label", INDEX, TABLE, SIZE)
FIELDS = (SCAN, LABEL, INSTANCE, DEPTH, HEIGHT, PARTS, THINGS)


@given(of_numpy.arrays("<u4", SIZE, elements=st.integers(0, 3)))
def test_ids_count_the_pixels_of_no_object(ids: NDArray[Any]) -> None:
    assert check_row(INSTANCE, ids) == IdStatistics(20, int((ids == 0).sum()))


@given(of_numpy.arrays("<f4", SIZE, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)), st.data())
def test_values_count_what_was_measured(values: NDArray[Any], data: st.DataObject) -> None:
    values[data.draw(of_numpy.arrays(np.bool_, SIZE))] = np.nan
    known = [Fraction(float(value)) for value in values.reshape(-1) if not np.isnan(value)]
    unit = 1 << UNIT_BITS["<f4"]
    total, squares = int(sum(known) * unit), int(sum(number * number for number in known) * unit**2)
    expected = ValueStatistics(len(known), 20 - len(known), (total,), (squares,))
    assert check_row(DEPTH, values) == expected


@given(of_numpy.arrays("<i2", SIZE, elements=st.integers(-2, 2)))
def test_whole_values_have_a_number_for_no_measurement(values: NDArray[Any]) -> None:
    known = values[values != -1].tolist()
    assert check_row(HEIGHT, values) == ValueStatistics(
        len(known), 20 - len(known), (sum(known),), (sum(number * number for number in known),)
    )


@pytest.mark.parametrize("form", [INDEX, ONEHOT])
def test_classes_are_counted_piece_by_piece(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "PIECE", 3)
    index = np.arange(20, dtype=np.uint8).reshape(SIZE) % 9
    index[3] = TABLE.ignore_index
    field = classes_field("label", form, TABLE, SIZE)
    label = expand(index, len(TABLE)) if form == ONEHOT else index
    found = check_row(field, label)
    assert isinstance(found, ClassStatistics)
    assert (found.classes, found.ignored) == ((2, 2, 2, 2, 2, 2, 1, 1, 1), 5)
    label[..., 3, 4] = 10
    with pytest.raises(BadPair, match="none of 9 classes"):
        check_row(field, label)


@given(of_numpy.arrays(np.uint8, (9, *SIZE), elements=st.integers(0, 1)))
def test_overlapping_classes_are_counted_in_both_forms(planes: NDArray[np.uint8]) -> None:
    pixels = planes.sum((1, 2)).tolist()
    rows = [int(count > 0) for count in pixels]
    none = int((planes.sum(0) == 0).sum())
    expected = ClassStatistics(tuple(pixels), tuple(rows), tuple(20 * row for row in rows), none)
    assert check_row(THINGS, planes) == check_row(PARTS, pack_bits(planes)) == expected


@pytest.mark.parametrize(
    ("field", "number", "words"),
    [
        (DEPTH, np.inf, "numbers in its depth that are not finite, and not the fill nan"),
        (replace(DEPTH, fill=0), np.nan, "numbers in its depth that are not finite, and not the fill 0"),
        (PARTS, 255, "numbers in its parts that are in none of 9 classes"),
        (THINGS, 2, "numbers in its things that are in none of 9 classes"),
        (LABEL, 9, "numbers in its label that are in none of 9 classes"),
        (picture_field("scan", "<f4", SIZE), 1.5, "numbers in its scan that are not from 0 to 1"),
        (replace(picture_field("scan", "<f4", SIZE), range=None), np.nan, "numbers in its scan that are not finite"),
    ],
)
def test_impossible_numbers_are_named(field: Field, number: float, words: str) -> None:
    row = np.zeros(field.row_shape(*SIZE), field.dtype)
    check_row(field, row)
    row[..., 2, 3] = number
    with pytest.raises(BadPair, match=re.escape(words)):
        check_row(field, row)


def test_another_form_of_nan_is_not_the_fill() -> None:
    values = np.full(SIZE, np.nan, np.float32)
    assert check_row(DEPTH, values) == ValueStatistics(0, 20, (0,), (0,))
    values.view("<u4")[0, 0] |= 1
    with pytest.raises(BadPair, match="not finite"):
        check_row(DEPTH, values)


def test_a_deep_check_reads_every_kind(storage: str, tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    arrays = {field.name: dice.integers(0, 2, (3, *field.row_shape(*SIZE))).astype(field.dtype) for field in FIELDS}
    arrays["parts"][:, 1] &= 1
    keys = ["a", "b", "c"]
    writer(storage).write(tmp_path / "shard", {**arrays, "key": np.array(keys, "S1")}, FIELDS)
    shard = opener(storage)(tmp_path / "shard", ShardFacts(3, FIELDS))
    crc32: dict[str, list[int]] = {field.name: [] for field in FIELDS}
    known = no_rows(FIELDS)
    for row in range(3):
        for field in FIELDS:
            crc32[field.name].append(zlib.crc32(arrays[field.name][row].tobytes()))
            known[field.name] += check_row(field, arrays[field.name][row])
    names = tuple(field.name for field in FIELDS)
    sources = tuple(RowInput(key, *names) for key in keys)
    looks = ("0" * 24,) * 3
    sums = {name: tuple(numbers) for name, numbers in crc32.items()}
    receipt = Receipt("all", "0" * 32, storage, "0" * 64, names, sources, (), (), (), sums, looks, known)
    assert not list(wrong_rows(shard, receipt))
    scan = known["scan"]
    assert isinstance(scan, PictureStatistics)
    other = replace(receipt, statistics={**known, "scan": replace(scan, numbers=1)})
    assert [wrong.message for wrong in wrong_rows(shard, other)] == [
        "its statistics, such as its counts of classes, are not those in its receipt"
    ]
