"""`packer inspect`: where a row is, where it came from, what was done to it, and whether its bytes are whole."""

from __future__ import annotations

import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from conftest import RawFolder, json_of, run

from packer import build_pack
from packer.packs import list_keys
from packer.packs.inspect_row import inspect_rows
from packer.packs.recipe_words import placement_words
from packer.publish.target import STAMPS
from readers import RequestError, open_dataset
from readers.contract.statistics import ClassStatistics
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")


def test_every_fact_is_that_of_the_files(packed_index: Path, raw_folder: RawFolder) -> None:
    train = open_dataset(packed_index, "train", label="index")
    key, sample = train.key(5), train[5]
    (row,) = (row for row in inspect_rows(packed_index, key) if row.split == "train")
    assert (row.row, row.key, row.generation) == (5, key, 1)
    for field, pixels in zip(row.fields, map(np.asarray, sample), strict=True):
        stored = field.file.read_bytes()[field.start : field.stop]
        assert stored == pixels.tobytes()
        assert zlib.crc32(stored) == field.crc32
        assert field.whole
        (name,) = field.sources
        assert blake3((raw_folder.path / name).read_bytes()).hexdigest() == field.identity
    label = np.asarray(sample[1])
    known = row.fields[1].statistics
    assert isinstance(known, ClassStatistics)
    assert dict(row.fields[1].classes) == {
        name: count for index, name in enumerate(train.classes.names) if (count := int((label == index).sum()))
    }
    assert known.ignored == int((label == 255).sum())


def test_json_and_text(packed_index: Path) -> None:
    key = open_dataset(packed_index, "val").key(0)
    (row,) = json_of("inspect", "--json", "--split", "val", packed_index, key)
    assert [field["name"] for field in row["fields"]] == ["image", "label"]
    text = run("inspect", "--split", "val", packed_index, key).stdout
    for words in (f"val/{key}", row["shard"], row["fields"][0]["sources"][0], "as in its receipt", "not scaled"):
        assert words in text


def test_without_stamps_the_files_are_not_known(packed_index: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(packed_index, out)
    shutil.rmtree(out / STAMPS)
    key = open_dataset(out, "val").key(0)
    row = inspect_rows(out, key, "val")[0]
    assert (row.source_size, [field.sources for field in row.fields]) == (None, [(), ()])
    assert "not known: the pack has no stamps" in run("inspect", "--split", "val", out, key).stdout


def test_a_damaged_row_is_reported_by_its_exit_code(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(raw_folder.path, out, labels="index")
    key = open_dataset(out, "val").key(2)
    image = inspect_rows(out, key, "val")[0].fields[0]
    with image.file.open("r+b") as file:
        file.seek(image.start)
        first = file.read(1)
        file.seek(image.start)
        file.write(bytes([first[0] ^ 1]))
    done = run("inspect", "--split", "val", out, key)
    assert done.exit_code == 4
    assert "NOT the one in its receipt" in done.stdout
    assert "image: damaged" in done.stderr


def test_an_unknown_key_is_refused_with_names_like_it(packed_index: Path) -> None:
    for key in ("street", "street_000@0+0"):
        with pytest.raises(RequestError, match=f"no row with the key '{re.escape(key)}'; near it are 'street_"):
            inspect_rows(packed_index, key)


def test_a_picture_that_is_not_a_row_is_refused_with_tiles_of_pictures_like_it(
    raw_folder: RawFolder, tmp_path: Path
) -> None:
    """The key of a tile is three times as long as the name of its picture, so they are not like each other."""
    build_pack(raw_folder.path, tmp_path / "out", size="16x16", fit="tile")
    for name in ("street_000", "strect_000"):
        with pytest.raises(RequestError, match=f"no row with the key '{name}'; near it are '[a-z_0-9]*@"):
            inspect_rows(tmp_path / "out", name)


@pytest.mark.parametrize(
    ("recipe", "source", "stored", "words"),
    [
        ({"fit": "stretch"}, (100, 50), (10, 10), ["100x50 scaled to 10x10 (area; labels by the nearest pixel)"]),
        ({"fit": "stretch"}, (10, 10), (10, 10), ["10x10, not scaled"]),
        (
            {"fit": "letterbox"},
            (100, 50),
            (10, 10),
            [
                "100x50 scaled to 10x5 (area; labels by the nearest pixel)",
                "placed at the rows 0 to 10 and the columns 2 to 7 of 10x10; the rest is padding",
            ],
        ),
        (
            {"fit": "shorter-side"},
            (100, 50),
            (10, 10),
            [
                "100x50 scaled to 20x10 (area; labels by the nearest pixel)",
                "of that the rows 5 to 15 and the columns 0 to 10",
            ],
        ),
        (
            {"fit": "tile"},
            (100, 50),
            (10, 10),
            ["100x50, not scaled", "of that the rows 20 to 30 and the columns 30 to 40"],
        ),
        ({"fit": "native"}, (100, 50), (100, 50), ["100x50, not scaled"]),
        ({"fit": "stretch"}, None, (10, 10), ["its size before is not known; fit stretch"]),
        ({"fit": "another"}, (100, 50), (10, 10), ["100x50 became 10x10, fit another"]),
    ],
)
def test_geometry_in_words(recipe: dict[str, Any], source: Any, stored: Any, words: list[str]) -> None:
    key = "a@000020+000030of100x50" if recipe["fit"] == "tile" else "a"
    assert list(placement_words({"interpolation": "area", **recipe}, key, source, stored)) == words


def test_all_keys_are_listed(packed_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_keys, "KEYS_TOGETHER", 2)
    pack = Pack.open(packed_index)
    keys = [pack.shard(number).key(inside) for number, inside in map(pack.table.locate, pack.rows_of("all"))]
    assert run("inspect", packed_index, "--keys").stdout.splitlines() == keys
    val = run("inspect", packed_index, "--keys", "--split", "val").stdout.splitlines()
    assert val == [keys[row] for row in pack.rows_of("val")]
    for wrong in (("--keys", "street_000"), ("--keys", "--json"), ()):
        assert run("inspect", packed_index, *wrong).exit_code == 2


def test_the_result_of_a_build_is_shown_as_one_line(raw_folder: RawFolder, tmp_path: Path) -> None:
    summary = build_pack(raw_folder.path, tmp_path / "out")
    assert repr(summary) == f"<Summary: generation 1, {summary.rows} rows of {summary.pairs} pairs, 0 left out>"
