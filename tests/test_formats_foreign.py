"""Foreign tools open our shards without us, and find plain arrays under plain names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import lmdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import SMALL_SHARDS, RawFolder, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.shards.formats import lmdb as lmdb_writer
from packer.shards.formats import writer
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.formats import opener
from readers.formats.column import ShardFacts
from readers.formats.shard import gather

Rows = dict[str, tuple[NDArray[Any], NDArray[Any]]]


@pytest.fixture
def pack_of(raw_folder: RawFolder, tmp_path: Path) -> Any:
    def make(storage: str) -> list[Path]:
        out = pack(raw_folder.path, tmp_path / storage, "--format", storage, "--labels", "index", *SMALL_SHARDS)
        return sorted(path for path in out.glob("shards/train-*") if path.suffix != ".json")

    return make


def check(rows: Iterator[tuple[str, NDArray[Any], NDArray[Any]]], raw: RawFolder) -> None:
    """Every sample of the training split once, with its pixels."""
    keys = []
    for key, image, label in rows:
        assert np.array_equal(image.transpose(1, 2, 0), raw.images["train", key])
        assert np.array_equal(label, raw.labels["train", key])
        keys.append(key)
    assert sorted(keys) == sorted(key for split, key in raw.images if split == "train")


def test_polars_and_duckdb_open_arrow(pack_of: Any, raw_folder: RawFolder) -> None:
    paths = pack_of("arrow")
    keys = sorted(key for split, key in raw_folder.images if split == "train")
    frame = pl.concat([pl.read_ipc(path, columns=["key"]) for path in paths])
    assert sorted(frame["key"].to_list()) == keys
    table = pa.concat_tables([pa.ipc.open_file(path).read_all().select(["key"]) for path in paths])
    assert [row[0] for row in duckdb.from_arrow(table).order("key").fetchall()] == keys


def made_up(rows: int, pixels: int, key_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of a shard, every number of them different from its neighbours'."""
    rng = np.random.default_rng(rows * pixels)
    return {
        "image": rng.integers(0, 256, (rows, 1, 1, pixels), dtype=np.uint8),
        "label": rng.integers(0, 256, (rows, 1, pixels), dtype=np.uint8),
        "key": np.array([b"%0*d" % (key_bytes * (row % 3) // 2, row) for row in range(rows)], np.bytes_),
    }


def fields_of(pixels: int) -> tuple[Field, Field]:
    image = picture_field("image", "|u1", (1, pixels), ("gray",))
    return image, classes_field("label", "index", ClassTable((SegClass("cell"),)), (1, pixels))


def check_opened(storage: str, stem: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Our opener finds what our writer wrote."""
    rows, _, _, pixels = arrays["image"].shape
    shard = opener(storage)(stem, ShardFacts(rows, fields_of(pixels)))
    for name in ("image", "label"):
        got = np.empty_like(arrays[name])
        gather(name, [(shard, list(range(rows)), list(range(rows)))], got)
        assert np.array_equal(got, arrays[name])
    assert [shard.key(row).encode() for row in range(rows)] == arrays["key"].tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 60), pixels=st.integers(1, 3000), batch=st.integers(1, 40_000))
def test_any_shard_opens_with_the_rows_that_were_written(
    storage: str, tmp_path_factory: pytest.TempPathFactory, rows: int, pixels: int, batch: int
) -> None:
    """Any number of rows of any size; in Arrow, in record batches of any size."""
    stem = tmp_path_factory.mktemp("any") / "shard"
    arrays = made_up(rows, pixels, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("packer.shards.formats.arrow.BATCH_BYTES", batch)
        writer(storage).write(stem, arrays, fields_of(pixels))
    check_opened(storage, stem, arrays)


@given(st.integers(1, 400), st.integers(1, 9000), st.integers(1, 12))
def test_our_walk_of_the_tree_finds_what_lmdb_finds(
    tmp_path_factory: pytest.TempPathFactory, rows: int, pixels: int, key_bytes: int
) -> None:
    """Any number of rows of any size: values inside leaves, values in runs of pages, trees of one to three levels."""
    stem = tmp_path_factory.mktemp("walk") / "shard"
    arrays = made_up(rows, pixels, key_bytes)
    (path,) = lmdb_writer.write(stem, arrays, fields_of(pixels))
    assert path.stat().st_size <= lmdb_writer.map_size([2 * pixels + 256] * rows)
    check_opened("lmdb", stem, arrays)
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False) as environment, environment.begin() as txn:
        assert environment.stat()["entries"] == rows + 1
        for row, (_, value) in zip(range(rows), txn.cursor(), strict=False):
            assert value[:pixels] == arrays["image"][row].tobytes()
