"""Commands about a pack that has fields of every kind, parts, rejects and notes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import FIELDS, MANY, NAMES, THINGS, Row, encoded, tiled, volumes, write_any_pack
from conftest import json_of, run

from packer import verify_pack
from readers import open_dataset
from readers.contract.bits import unpack_bits
from readers.contract.fields import Field
from readers.contract.kinds import PICTURE
from readers.contract.tile_grid import index_of
from readers.pack import Pack

Rows = dict[tuple[str, str], Row]


@pytest.fixture(params=[(FIELDS, False), (FIELDS, True), (volumes(), True)], ids=["one size", "native", "volumes"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Rows]:
    fields, varied = request.param
    return tmp_path / "out", write_any_pack(tmp_path / "out", "npy", varied, fields)


def values_of(rows: Rows, split: str, name: str) -> list[Any]:
    return [row[name] for (of, _), row in rows.items() if of == split and name in row]


def stats_of(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what is printed of each field of each split."""
    splits = json_of("stats", "--json", out)
    return {(split["split"], field["name"]): field for split in splits for field in split["fields"]}


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("fields", "varied"),
    [*itertools.product((FIELDS, encoded(), tiled()), (False, True)), (volumes(), True)],
    ids=["raw", "native", "zstd", "native zstd", "tiles", "native tiles", "volumes"],
)
def test_the_pack_is_whole_and_readers_deliver_its_rows(
    storage: str, fields: tuple[Field, ...], varied: bool, tmp_path: Path
) -> None:
    rows = write_any_pack(tmp_path / "out", storage, varied, fields)
    assert verify_pack(tmp_path / "out", deep=True) == []
    for split in ("train", "val"):
        dataset = open_dataset(tmp_path / "out", split, fields=NAMES)
        assert [(split, dataset.key(index)) for index in range(len(dataset))] == [
            row for row in rows if row[0] == split
        ]
        for index in range(len(dataset)):
            row = rows[split, dataset.key(index)]
            for field, found in zip(FIELDS, dataset[index], strict=True):
                if field.name in row:
                    assert found.numpy().tobytes() == row[field.name].tobytes()
    pack = Pack.open(tmp_path / "out")
    for shard in map(pack.shard, range(len(pack.table))):
        for index in range(shard.facts.rows):
            part = tuple(slice(side // 3, side // 3 + 1 + side // 2) for side in shard.size(index))
            for field in shard.facts.fields:
                row = rows[shard.key(index).split("/")[0], shard.key(index)]
                assert shard.window(field, index, part).tobytes() == row[field.name][index_of(part)].tobytes()


def test_stats_are_those_of_the_rows(made: tuple[Path, Rows]) -> None:
    out, rows = made
    found = stats_of(out)
    assert list(found) == [(split, name) for split in ("train", "val") for name in NAMES]
    for (split, name), facts in found.items():
        arrays = values_of(rows, split, name)
        field = next(field for field in FIELDS if field.name == name)
        pixels = sum(each.size // field.numbers for each in arrays)
        assert (facts["rows"], facts["pixels"]) == (len(arrays), pixels)
        if field.kind == PICTURE:
            low, high = field.range or (0, 1)
            bands = np.concatenate([each.reshape(len(each), -1) for each in arrays], 1).astype(np.float64)
            assert facts["mean"] == pytest.approx(((bands - low) / (high - low)).mean(1))
            assert facts["std"] == pytest.approx((bands / (high - low)).std(1))


def test_stats_count_what_says_nothing_and_the_classes(made: tuple[Path, Rows]) -> None:
    out, rows = made
    found = stats_of(out)
    for split in ("train", "val"):
        for name, empty in (("instance", 0), ("panoptic", 0), ("height", -1), ("label", 255), ("fine", 65535)):
            numbers = np.concatenate([each.reshape(-1) for each in values_of(rows, split, name)])
            assert found[split, name]["empty"] == (numbers == empty).sum()
        depth = np.concatenate([each.reshape(-1) for each in values_of(rows, split, "depth")]).astype(np.float64)
        assert found[split, "depth"]["empty"] == np.isnan(depth).sum()
        assert found[split, "depth"]["mean"] == pytest.approx([np.nanmean(depth)])
        assert found[split, "depth"]["std"] == pytest.approx([np.nanstd(depth)])
        for name in ("parts", "planes"):
            planes = values_of(rows, split, name)
            planes = [unpack_bits(each, len(THINGS)) for each in planes] if name == "parts" else planes
            assert found[split, name]["empty"] == sum(int((each.max(0) == 0).sum()) for each in planes)
            pixels = sum(each[0].size for each in planes)
            for number, entry in enumerate(found[split, name]["classes"]):
                marked = sum(int(each[number].sum()) for each in planes)
                assert (entry["pixels"], entry["share"], entry["weights"]) == (marked, marked / pixels, {})
        labels = Counter(np.concatenate([each.reshape(-1) for each in values_of(rows, split, "fine")]).tolist())
        counted = [entry["pixels"] for entry in found[split, "fine"]["classes"]]
        assert counted == [labels[number] for number in range(len(MANY))]


def test_the_answer_about_a_split_is_that_of_its_label_and_its_image(made: tuple[Path, Rows]) -> None:
    out, _ = made
    for split in json_of("stats", "--json", out):
        fields = {field["name"]: field for field in split["fields"]}
        assert (split["mean"], split["std"]) == (fields["image"]["mean"], fields["image"]["std"])
        assert split["classes"] == fields["label"]["classes"]
        assert (split["pixels"], split["ignored"]) == (fields["label"]["pixels"], fields["label"]["empty"])


def test_stats_print_a_paragraph_for_each_field(made: tuple[Path, Rows]) -> None:
    printed = run("stats", made[0]).stdout
    assert printed.startswith("train: 18 rows (")
    for line in (
        "scan: picture\nmean  0.",
        "label: classes in 12 of 18 rows, ",
        "instance: ids, ",
        "\ndepth: values in 12",
    ):
        assert line in printed
    assert " % without a value\nmean  " in printed
    assert re.search(r"parts: multilabel, .* % in no class\n   class +pixels  rows\n0  thing0  ", printed)


def test_info_names_the_fields_parts_and_classes(tmp_path: Path) -> None:
    write_any_pack(tmp_path / "out", "arrow")
    printed = run("info", tmp_path / "out").stdout
    for line in (
        "  train     18 rows, 6 shards, 1 rejects\n            6 rows with scan, image, signed, half, single, label",
        "            6 rows with scan, image, signed, half, single, fine, onehot, instance, panoptic, depth, height",
        "  scan      picture     bands   <u2  (4, 5, 7)  red, green, blue, near infrared\n",
        "  label     classes     index   |u1  (5, 7)     3 classes, optional\n",
        "  fine      classes     index   <u2  (5, 7)     300 classes\n",
        "  onehot    classes     onehot  |u1  (3, 5, 7)  3 classes\n",
        "  panoptic  ids         index   <u2  (5, 7)\n",
        "  depth     values      index   <f4  (5, 7)     missing nan, optional\n",
        "  height    values      index   <i2  (5, 7)     missing -1\n",
        "  parts     multilabel  bits    |u1  (2, 5, 7)  9 classes\n",
        "classes     3, share of the label pixels\n  0   #0007ff  ",
        "classes     9, rows of parts in which each occurs\n  0                   24  thing0\n",
        "recipe\n  made            up\n",
    ):
        assert line in printed
    assert json_of("info", "--json", tmp_path / "out")["fields"][12]["kind"] == "multilabel"
    write_any_pack(tmp_path / "varied", "npy", varied=True)
    assert "  scan      picture     bands   <u2  (4, H, W)  red" in run("info", tmp_path / "varied").stdout
