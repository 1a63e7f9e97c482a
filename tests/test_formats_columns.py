"""Columns of any name and dtype: every format gives back what was written, for any number of fields and any sizes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.shards.formats import ShardArrays, row_lengths, writer
from readers import DamagedError
from readers.contract.classes import ClassTable, SegClass
from readers.contract.field_entry import MOST_FIELDS, NAME
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.kinds import BITS, IDS, INDEX, KINDS, MULTILABEL, PICTURE, VALUES
from readers.formats import opener
from readers.formats.column import ShardFacts
from readers.formats.shard import Shard, gather

Size = tuple[int, int]
Rows = list[list[NDArray[Any]]]
TABLE = ClassTable(tuple(SegClass(f"class{number}") for number in range(9)))
NAMES = st.from_regex(NAME, fullmatch=True)


def field_of(name: str, kind: str, dtype: str, bands: int, size: Size | None) -> Field:
    """Return a field of this kind and dtype."""
    shape = size or (None, None)
    if kind == PICTURE:
        return picture_field(name, dtype, size, tuple(f"band{number}" for number in range(bands)))
    if kind == MULTILABEL:
        return Field(name, MULTILABEL, BITS, "|u1", (2, *shape), classes=TABLE)
    if kind in (IDS, VALUES):
        return Field(name, kind, INDEX, dtype, shape)
    return classes_field(name, INDEX, TABLE, size)


STORED = [(kind, dtype) for kind, facts in KINDS.items() for dtype in next(iter(facts.dtypes.values()))]


@st.composite
def shards(draw: st.DrawFn) -> tuple[tuple[Field, ...], list[Size]]:
    """Return fields, and the sizes of rows."""
    side, native = st.integers(1, 9), draw(st.booleans())
    sizes = draw(st.lists(st.tuples(side, side), min_size=1, max_size=5))
    size = None if native else sizes[0]
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    fields = [field_of(name, *draw(st.sampled_from(STORED)), draw(st.integers(1, 16)), size) for name in names]
    return tuple(fields), sizes if native else [sizes[0]] * len(sizes)


def made_up(fields: tuple[Field, ...], sizes: list[Size]) -> tuple[ShardArrays, Rows]:
    """Return the columns of a shard and the rows in them, of any bits: also NaN of any kind."""
    dice = np.random.default_rng(len(sizes))
    rows = [
        [
            np.frombuffer(dice.bytes(field.row_bytes_at(*size)), field.dtype).reshape(field.row_shape(*size))
            for field in fields
        ]
        for size in sizes
    ]
    arrays: dict[str, NDArray[Any]] = {}
    for number, field in enumerate(fields):
        column = [row[number] for row in rows]
        if field.flat:
            arrays[field.name] = np.concatenate([part.reshape(-1) for part in column])
            arrays[f"{field.name}_end"] = np.cumsum([part.size for part in column]).astype("<u8")
        else:
            arrays[field.name] = np.stack(column)
    if fields[0].native:
        arrays["size"] = np.array(sizes, "<u4")
    return {**arrays, "key": np.array([b"%d" % row for row in range(len(sizes))])}, rows


def check(shard: Shard, fields: tuple[Field, ...], sizes: list[Size], rows: Rows) -> None:
    for number, (size, row) in enumerate(zip(sizes, rows, strict=True)):
        assert (shard.size(number), shard.key(number)) == (size, str(number))
        for field, wanted in zip(fields, row, strict=True):
            got = shard.row(field, number)
            assert (got.dtype.str, got.shape, got.tobytes()) == (field.dtype, wanted.shape, wanted.tobytes())
    for field, column in zip(fields, zip(*rows, strict=True), strict=True):
        if not field.flat:
            out = np.empty((len(rows), *column[0].shape), field.dtype)
            gather(field.name, [(shard, list(range(len(rows))), list(range(len(rows))))], out)
            assert out.tobytes() == b"".join(part.tobytes() for part in column)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shard=shards(), batch=st.integers(1, 4000))
def test_columns_of_any_name_and_dtype_come_back(
    storage: str, tmp_path_factory: pytest.TempPathFactory, shard: tuple[tuple[Field, ...], list[Size]], batch: int
) -> None:
    """Rows have one size or each its own; in Arrow, record batches have any size."""
    (fields, sizes), stem = shard, tmp_path_factory.mktemp("any") / "shard"
    arrays, rows = made_up(fields, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("packer.shards.formats.arrow.BATCH_BYTES", batch)
        writer(storage).write(stem, arrays, fields)
    check(opener(storage)(stem, ShardFacts(len(sizes), fields)), fields, sizes, rows)
    only = fields[-1:]
    check(
        opener(storage)(stem, ShardFacts(len(sizes), fields, (only[0].name,))), only, sizes, [row[-1:] for row in rows]
    )


@pytest.mark.parametrize("size", [(3, 2), None], ids=["plain", "native"])
def test_a_shard_has_as_many_fields_as_a_pack_may_have(storage: str, tmp_path: Path, size: Size | None) -> None:
    """With names as long as they may be. In HDF5 libhdf5 would put more than 8 datasets into another structure."""
    names = [f"{'a' * 30}{number:02}" for number in range(MOST_FIELDS)]
    fields = tuple(field_of(name, *STORED[number % len(STORED)], 3, size) for number, name in enumerate(names))
    sizes = [(3, 2)] * 3
    arrays, rows = made_up(fields, sizes)
    writer(storage).write(tmp_path / "shard", arrays, fields)
    check(opener(storage)(tmp_path / "shard", ShardFacts(len(sizes), fields)), fields, sizes, rows)
    if storage == "hdf5":
        with h5py.File(f"{tmp_path}/shard.h5") as file:
            assert {name: file[name][:].tobytes() for name in file} == {name: a.tobytes() for name, a in arrays.items()}


def test_signed_and_unsigned_numbers_are_not_confused(storage: str, tmp_path: Path) -> None:
    fields = {dtype: (field_of("depth", VALUES, dtype, 1, (4, 4)),) for dtype in ("<i2", "<u2", "<f2")}
    for dtype, written in fields.items():
        writer(storage).write(tmp_path / dtype[1:], made_up(written, [(4, 4)])[0], written)
        for other, expected in fields.items():
            if other != dtype:
                with pytest.raises(DamagedError, match=dtype[1:]):
                    opener(storage)(tmp_path / dtype[1:], ShardFacts(1, expected))


def test_the_lengths_of_rows_are_those_of_their_numbers() -> None:
    fields = (field_of("scan", PICTURE, "<f4", 2, None), field_of("depth", VALUES, "<i2", 1, None))
    arrays, rows = made_up(fields, [(1, 2), (3, 4)])
    for number, field in enumerate(fields):
        assert row_lengths(arrays, field).tolist() == [row[number].nbytes for row in rows]
        assert math.prod(arrays[field.name].shape) == arrays[f"{field.name}_end"][-1]


@pytest.mark.parametrize("left", [1, 100, 5000])
def test_a_shard_that_was_cut_says_so_and_names_the_file(storage: str, left: int, tmp_path: Path) -> None:
    field = field_of("image", PICTURE, "|u1", 3, (64, 64))
    arrays, _ = made_up((field,), [(64, 64)] * 3)
    first = next(iter(writer(storage).write(tmp_path / "cut", arrays, [field])))
    first.write_bytes(first.read_bytes()[:left])
    with pytest.raises(DamagedError, match=rf"{first.name}: .*(cut short|not one of a \.npy file)"):
        opener(storage)(tmp_path / "cut", ShardFacts(3, (field,)))
