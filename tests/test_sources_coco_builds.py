"""Packs of files of COCO: classes, splits, what is missing, incremental builds, files that change."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, json_of, pack, run, write_png
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.sources.annotated.indexed_files import IndexedFiles
from packer.sources.file_states import elsewhere as state_elsewhere
from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.shard_table import ShardTable

pytestmark = pytest.mark.usefixtures("in_process")
SIZE = (24, 36)
CATEGORIES = [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}]


def box(number: int, picture: int, category: int, top: int, left: int, side: int = 10, **more: Any) -> dict[str, Any]:
    """Return an annotation that covers a square of pixels."""
    ring = [left, top, left + side, top, left + side, top + side, left, top + side]
    return {"id": number, "image_id": picture, "category_id": category, "segmentation": [ring], **more}


def images(names: Mapping[int, str]) -> list[dict[str, Any]]:
    return [{"id": number, "file_name": name, "height": 24, "width": 36} for number, name in names.items()]


OBJECTS = [box(1, 7, 3, 0, 0), box(2, 5, 18, 0, 0), box(3, 7, 18, 5, 5), box(4, 5, 3, 5, 5)]


def coco_folder(raw: Path, folder: str = "train2017", file: str = "instances_train2017.json", **lists: Any) -> Path:
    for number, name in enumerate("abc"):
        if not (raw / folder / f"{name}.png").exists():
            write_png(
                raw / folder / f"{name}.png", np.random.default_rng(number).integers(0, 256, (*SIZE, 3), np.uint8)
            )
    named = images({7: "a.png", 5: "b.png", 9: "c.png"})
    (raw / file).write_text(json.dumps({"images": named, "annotations": OBJECTS, "categories": CATEGORIES, **lists}))
    return raw


def options(folder: str = "train2017", file: str = "instances_train2017.json") -> tuple[str, ...]:
    return ("--annotations", file, "--image", f"{folder}/{{key}}.png")


def label_of(out: Path, row: int, split: str = "all") -> NDArray[Any]:
    return np.asarray(open_dataset(out, split, label="index")[row][1])


def shards(out: Path) -> list[str]:
    table = ShardTable.open(out, Manifest.load(out))
    return [table.fingerprint(number) for number in range(len(table))]


def test_a_name_with_a_line_feed_pretends_to_be_no_other_line(tmp_path: Path) -> None:
    raw = coco_folder(tmp_path / "raw", images=images({7: "a.png", 5: "b.png", 9: "c.png", 4: "d\nfinding   e.png"}))
    done = good("build", "--missing", "skip", *options(), raw, tmp_path / "out")
    assert "d\\u000afinding   e.png" in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("finding   e.png")]


@pytest.mark.parametrize("storage", STORAGES)
def test_a_file_of_coco_becomes_labels(tmp_path: Path, storage: str) -> None:
    out = pack(coco_folder(tmp_path / "raw"), tmp_path / "out", *options(), "--format", storage)
    classes = Manifest.load(out).classes
    assert classes is not None
    assert classes.names == ("background", "car", "dog")  # in the order of their ids
    expected = np.zeros(SIZE, np.uint8)
    expected[:10, :10], expected[5:15, 5:15] = 1, 2
    np.testing.assert_array_equal(label_of(out, 0), expected)
    expected[:10, :10], expected[5:15, 5:15] = 2, 1
    np.testing.assert_array_equal(label_of(out, 1), expected)
    assert not label_of(out, 2).any()
    assert run("verify", "--deep", out).exit_code == 0


def test_every_split_has_its_file(tmp_path: Path) -> None:
    raw = coco_folder(tmp_path / "raw", "images/train2017", "instances_train2017.json")
    coco_folder(raw, "images/val2017", "instances_val2017.json", annotations=OBJECTS[:1])
    out = pack(
        raw, tmp_path / "out", "--annotations", "instances_{split}2017.json", "--image", "images/{split}2017/{key}.png"
    )
    assert [label_of(out, 0, split).max() for split in ("train", "val")] == [2, 1]


def test_other_fields_come_from_the_same_file(tmp_path: Path) -> None:
    fields = ("--field", "instance=ids", "--field", "parts=multilabel")
    out = pack(coco_folder(tmp_path / "raw"), tmp_path / "out", *options(), *fields)
    row = open_dataset(out, "all", label="index", fields=("label", "instance", "parts"))[0]
    label, ids, parts = map(np.asarray, row)
    assert [ids[0, 0], ids[7, 7], ids[20, 30]] == [1, 2, 0]
    assert parts[:, 7, 7].tolist() == [1, 1]
    assert label[7, 7] == 2


def test_one_changed_polygon_builds_one_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, small = coco_folder(tmp_path / "raw"), ("--shard-size", "3KB")
    out = pack(raw, tmp_path / "out", *options(), *small)
    before = shards(out)
    assert len(before) == 3
    coco_folder(raw, annotations=[box(9, 5, 3, 9, 9), *OBJECTS[:3]])
    again = run("build", *options(), *small, raw, out)
    assert "2 reused" in again.stdout
    assert len(set(before) & set(shards(out))) == 2
    (raw / "instances_train2017.json").touch()
    assert "3 reused" in run("build", *options(), *small, raw, out).stdout


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    raw = coco_folder(
        tmp_path / "raw",
        images=images({7: "a.png", 5: "b.png", 30: "gone/d.png"}),
        annotations=[*OBJECTS, box(9, 30, 3, 0, 0), box(10, 999, 3, 0, 0)],
    )
    errors = errors_of(1, "build", *options(), raw, tmp_path / "out")
    assert "train2017/c.png: is not listed by the annotations" in errors
    assert "instances_train2017.json#gone/d.png: has no image" in errors
    built = good("build", *options(), "--missing", "skip", raw, tmp_path / "out")
    assert "1 annotations are of pictures that the file does not list" in built.stdout + built.stderr
    kept = pack(raw, tmp_path / "kept", *options(), "--missing", "keep")
    assert len(open_dataset(kept, "all")) == 3


def test_a_file_that_changes_after_the_plan_gives_bad_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = coco_folder(tmp_path / "raw")
    path = "instances_train2017.json"
    planned = IndexedFiles.at(raw, [path])
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))  # another machine has no index of it
    elsewhere = IndexedFiles(raw, {path: state_elsewhere(state) for path, state in planned.states.items()})
    part = f"{path}#a.png"
    assert elsewhere.read(part)[1] == planned.read(part)[1] == planned.digest(part).hex()
    late = IndexedFiles(raw, planned.states)
    coco_folder(raw, annotations=OBJECTS[1:])
    for files in (planned, elsewhere, late):
        with pytest.raises(BadPair, match="changed after its rows were listed; build again"):
            files.read(part)


def test_an_index_that_others_could_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = coco_folder(tmp_path / "raw")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    shared = tmp_path / f"segpack-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    assert IndexedFiles.at(raw, ["instances_train2017.json"]).categories == ("car", "dog")
    assert list(shared.iterdir()) == []
    shared.chmod(0o700)
    (shared / "of a killed process").mkdir()
    os.utime(shared / "of a killed process", (0, 0))
    IndexedFiles.at(raw, ["instances_train2017.json"])
    assert len(list(shared.iterdir())) == 1


@pytest.mark.parametrize("name", ["starts.npy", "digests.npy", "facts.json"])
@pytest.mark.parametrize("damage", ["deleted", "cut", "emptied"])
def test_a_damaged_index_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str) -> None:
    raw = coco_folder(tmp_path / "raw")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    part = "instances_train2017.json#a.png"
    before = IndexedFiles.at(raw, ["instances_train2017.json"]).read(part)[1]
    (kept,) = (tmp_path / f"segpack-{os.getuid()}").iterdir()
    file = kept / name
    if damage != "deleted":
        file.write_bytes(file.read_bytes()[: 20 if damage == "cut" else 0])
    else:
        file.unlink()
    assert IndexedFiles.at(raw, ["instances_train2017.json"]).read(part)[1] == before
    assert file.stat().st_size > 20


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ('{"images": []', "instances_train2017.json: ends too early, at byte 13"),
        ("[1, 2", "instances_train2017.json: has an item that is not a task of Label Studio, at byte 1"),
        ("{}", "is not a file of COCO: it lists no images"),
        ('{"images": [{"id": 1, "file_name": "z.png"}]}', "no picture is listed in instances_train2017.json"),
    ],
)
def test_files_that_cannot_be_read_stop_the_plan(tmp_path: Path, file: str, words: str) -> None:
    raw = coco_folder(tmp_path / "raw")
    (raw / "instances_train2017.json").write_text(file)
    assert words in errors_of(1, "build", *options(), raw, tmp_path / "out")


@pytest.mark.parametrize("name", ["line\nbreak.json", "tab\t.json", "byte\udcff.json"])
def test_a_name_that_no_plan_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    """A line break ended in a traceback."""
    raw = coco_folder(tmp_path / "raw", file=name)
    errors = errors_of(1, "build", *options(file="*.json"), raw, tmp_path / "out")
    assert f"{name!r}: the name has control characters or is not UTF-8; rename the file" in errors


def test_a_probe_keeps_the_splits_of_folders_if_one_file_lists_all_pictures(tmp_path: Path) -> None:
    """With ten pictures or more the proposal drew others, 80/10/10, without a question."""
    raw, config = tmp_path / "raw", tmp_path / "packer.toml"
    names = [f"{split}/{number}.png" for split in ("Train", "Validation") for number in range(6)]
    for number, name in enumerate(names):
        write_png(raw / "images" / name, np.full((*SIZE, 3), number, np.uint8))
    objects = [box(number, number, 3, 0, 0) for number in range(len(names))]
    lists = {"images": images(dict(enumerate(names))), "annotations": objects, "categories": CATEGORIES}
    (raw / "all.json").write_text(json.dumps(lists))
    assert "pictures  Train 6, Validation 6" in run("probe", "--write", config, raw).stdout
    assert run("build", "--quiet", "--config", config, raw, tmp_path / "out").exit_code == 0
    assert len(open_dataset(tmp_path / "out", "Train")) == 6
    write_png(raw / "more/12.png", np.zeros((*SIZE, 3), np.uint8))
    facts = json_of("probe", "--json", raw)
    assert facts["to_decide"][0].startswith("are these folders the splits: Train, Validation?")
    assert "80/10/10" not in facts["config"].partition("annotations =")[2]


def test_a_probe_proposes_the_files_of_coco(tmp_path: Path) -> None:
    raw = coco_folder(tmp_path / "one", "train2017")
    facts = json_of("probe", "--json", raw)
    assert facts["annotations"] == "instances_train2017.json"
    assert facts["objects"] == {"dog": 2, "car": 2}
    both = coco_folder(tmp_path / "both", "images/train2017", "annotations_of_train.json")
    (both / "captions_train.json").write_text(json.dumps({"images": images({7: "a.png"}), "annotations": []}))
    coco_folder(both, "images/val2017", "annotations_of_val.json")
    assert "pictures  train 3, val 3" in good("probe", "--write", tmp_path / "packer.toml", both).stdout
    out = pack(both, tmp_path / "out", "--config", tmp_path / "packer.toml")
    assert label_of(out, 0, "val").max() == 2


def test_a_picture_has_the_annotations_of_the_nearest_file_that_lists_it(tmp_path: Path) -> None:
    for number, task in enumerate(("first", "second")):
        coco_folder(tmp_path / "raw" / task, "images", "instances.json", annotations=OBJECTS[: 2 * number])
    out = pack(tmp_path / "raw", tmp_path / "out", "--annotations", "*/instances.json")
    assert [int(label_of(out, row).max()) for row in range(6)] == [0, 0, 0, 1, 2, 0]


def test_pictures_that_one_name_fits_are_not_labelled_alike(tmp_path: Path) -> None:
    raw = coco_folder(tmp_path / "raw")
    write_png(raw / "copies" / "a.png", np.zeros((*SIZE, 3), np.uint8))
    errors = errors_of(1, "build", "--annotations", "instances_train2017.json", raw, tmp_path / "out")
    assert "2 images: the annotations of another picture, too, whose path has the same end" in errors
    assert "all: copies/a.png, train2017/a.png" in errors
    coco_folder(raw, file="copy.json")
    twice = run("build", "--annotations", "*.json", "--image", "train2017/{key}.png", raw, tmp_path / "out")
    assert "listed by copy.json, instances_train2017.json. Name the files of one; all: train2017/a.png" in twice.stderr


def test_a_file_of_boxes_alone_is_refused(tmp_path: Path) -> None:
    boxes = [{**each, "segmentation": [], "bbox": [1, 1, 5, 5]} for each in OBJECTS]
    raw = coco_folder(tmp_path / "raw", annotations=boxes)
    words = "no object of the annotations can be painted: 4 objects with a box and no outline"
    assert words in errors_of(1, "build", *options(), raw, tmp_path / "out")
    assert words in json_of("probe", "--json", raw)["to_decide"][0]
    assert re.findall(r"^(pictures|sizes|objects) ", run("probe", raw).stdout, re.MULTILINE) == []
    coco_folder(raw, annotations=[*boxes[1:], OBJECTS[0]])
    pack(raw, tmp_path / "out", *options())
    coco_folder(raw, annotations=[])
    pack(raw, tmp_path / "empty", *options())


def test_an_outline_of_no_category_does_not_count(tmp_path: Path) -> None:
    boxes = [{**each, "segmentation": [], "bbox": [1, 1, 5, 5]} for each in OBJECTS[1:]]
    raw = coco_folder(tmp_path / "raw", annotations=[*boxes, {**OBJECTS[0], "category_id": 99}])
    assert "no object of the annotations can be painted" in run("build", *options(), raw, tmp_path / "out").stderr


@pytest.mark.parametrize("twice", ["segmentation", "category_id"])
def test_a_key_that_occurs_twice_in_an_annotation_is_refused(tmp_path: Path, twice: str) -> None:
    raw = coco_folder(tmp_path / "raw")
    file = raw / "instances_train2017.json"
    file.write_text(file.read_text().replace(f'"{twice}"', f'"{twice}": 1, "{twice}"', 1))
    refused = run("build", *options(), raw, tmp_path / "out")
    words = f"instances_train2017.json: has an item in which the key {twice!r} occurs twice, at byte"
    assert (refused.exit_code, words in refused.stderr) == (1, True)


def test_texts_that_utf_8_cannot_write_are_named(tmp_path: Path) -> None:
    raw = coco_folder(tmp_path / "raw", categories=[{"id": 3, "name": "\ud800"}, {"id": 18, "name": "dog"}])
    refused = run("build", *options(), raw, tmp_path / "out").stderr
    assert "instances_train2017.json: has the category '\\ud800', with the character \\ud800; rename it" in refused
    coco_folder(raw, images=[*images({7: "a.png", 5: "b.png", 9: "c.png"}), {"id": 1, "file_name": "\ud800.png"}])
    assert "\\ud800.png" in run("build", *options(), raw, tmp_path / "out").stderr
    coco_folder(raw, annotations=[{**OBJECTS[0], "id": "\ud800", "segmentation": [[1]]}, *OBJECTS[1:]])
    assert "annotation \\ud800" in run("build", *options(), raw, tmp_path / "out").stderr
