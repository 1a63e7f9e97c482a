"""Packs of pictures with annotations: classes, where the files are, other fields, notes, incremental builds."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from annotated_folders import SIZE, Shape, annotated_folder, box, class_names, labelme_text
from conftest import errors_of, good, json_of, pack, run
from drills.band_files import blocks_tiff
from handmade import chunk, exif, png
from numpy.typing import NDArray

from packer.classes.load import load_class_table
from packer.config.effective import effective
from packer.errors import UsageError
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.publish.remarks import load_remarks
from packer.sources.annotated import annotated
from packer.sources.annotated.annotation_files import read_identified
from packer.sources.annotated.known_sizes import KnownSizes
from packer.sources.files.folder import FolderSource
from readers import open_dataset
from readers.contract.classes import ClassTable, SegClass
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt

pytestmark = pytest.mark.usefixtures("in_process")
CAR, DOG = box("car", 0, 0, 10, 10), box("dog", 5, 5, 10, 10)
PICTURES = {"a": [CAR, DOG], "b": [DOG, CAR], "c": []}


def _label(out: Path, row: int = 0, split: str = "all") -> NDArray[Any]:
    return np.asarray(open_dataset(out, split, label="index")[row][1])


def test_annotations_next_to_pictures_become_labels(tmp_path: Path) -> None:
    out = pack(annotated_folder(tmp_path / "raw", PICTURES), tmp_path / "out")
    assert class_names(out) == ("background", "car", "dog")
    expected = np.zeros(SIZE, np.uint8)
    expected[:10, :10], expected[5:15, 5:15] = 1, 2
    np.testing.assert_array_equal(_label(out), expected)
    expected[:10, :10] = 1
    np.testing.assert_array_equal(_label(out, 1), expected)
    assert not _label(out, 2).any()
    assert run("verify", "--deep", out).exit_code == 0


@pytest.mark.parametrize(
    ("images", "annotations"),
    [
        ("{}.png", "{}.json"),
        ("pictures/{}.png", "pictures/{}.json"),
        ("images/{}.png", "labels/{}.json"),
        ("images/{}.png", "annotations/{}.png.json"),
        ("train/images/{}.png", "train/annotations/{}.json"),
    ],
)
def test_annotations_are_found_where_they_usually_are(tmp_path: Path, images: str, annotations: str) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES, images, annotations)
    out = pack(raw, tmp_path / "out")
    assert _label(out, split="train" if "train" in images else "all").any()
    assert run("diff", raw, out).exit_code == 0


def test_a_template_says_where_annotations_are(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES, "photos/{}_left.png", "truth/{}_shapes.json")
    options = ("--annotations", "truth/{key}_shapes.json")
    assert "name the pictures, such as --image" in errors_of(2, "build", *options, raw, tmp_path / "out")
    out = pack(raw, tmp_path / "out", *options, "--image", "photos/{key}_left.png")
    assert _label(out).any()
    again = run("build", "--config", out / "packer.toml", raw, out)
    assert "3 reused" in again.stdout


def test_label_pictures_and_annotations_are_a_choice(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES, "images/{}.png", "images/{}.json")
    annotated_folder(raw, dict.fromkeys(PICTURES), "labels/{}.png")
    errors = errors_of(1, "build", raw, tmp_path / "out")
    assert "has label pictures and annotations; choose one with" in errors
    assert "--image 'images/{key}' --label 'labels/{key}'" in errors
    assert "--image 'images/{key}' --annotations 'images/{key}.json'" in errors


def test_pictures_that_are_labels_by_their_names_are_a_choice(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES)
    annotated_folder(raw, dict.fromkeys(PICTURES), "{}_seg.png")
    errors = errors_of(1, "build", raw, tmp_path / "out")
    assert "--image '{key}' --label '{key}_seg'" in errors
    assert "--image '{key}' --annotations '{key}.json'" in errors
    assert json_of("probe", "--json", raw)["label"] == "{key}_seg"


def test_the_fields_of_one_file_are_the_same_objects(tmp_path: Path) -> None:
    shapes = [CAR, box("car", 0, 20, 5, 5, group_id=7), box("car", 10, 20, 5, 5, group_id=7), DOG]
    fields = ("--field", "instance=ids", "--field", "parts=multilabel")
    out = pack(annotated_folder(tmp_path / "raw", {"a": shapes}), tmp_path / "out", *fields)
    row = open_dataset(out, "all", label="index", fields=("label", "instance", "parts"))[0]
    label, ids, parts = map(np.asarray, row)
    assert sorted(np.unique(ids).tolist()) == [0, 1, 2, 4]
    assert ids[0, 20] == ids[10, 20] == 2
    np.testing.assert_array_equal(ids > 0, label > 0)
    assert parts.shape == (2, *SIZE)
    assert parts[:, 7, 7].tolist() == [1, 1]
    assert label[7, 7] == 2
    fields_of = {field.name: field.classes for field in Manifest.load(out).fields}
    assert fields_of["parts"] is not None
    assert fields_of["parts"].names == ("car", "dog")


def test_a_table_chooses_among_the_categories(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES)
    (tmp_path / "classes.csv").write_text("name,r,g,b\nother,0,0,0\ndog,255,0,0\nbackground,9,9,9\n")
    table = ("--classes", tmp_path / "classes.csv")
    errors = errors_of(1, "build", *table, raw, tmp_path / "out")
    assert "annotations have categories that are in no class: 1; " in errors
    assert "a.json: 2 objects of the category 'car'" in errors
    out = pack(raw, tmp_path / "out", *table, "--unknown", "ignore")
    assert class_names(out) == ("other", "dog", "background")
    assert [_label(out)[at] for at in ((0, 0), (7, 7), (20, 20))] == [255, 1, 2]
    ignoring = pack(raw, tmp_path / "ignoring", *table, "--ignore", "car", "--ignore", "dog")
    assert [_label(ignoring)[at] for at in ((0, 0), (7, 7), (20, 20))] == [255, 255, 1]


def test_without_a_background_what_no_object_covers_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "classes.csv").write_text("name,r,g,b\ncar,0,0,0\ndog,255,0,0\n")
    raw = annotated_folder(tmp_path / "raw", PICTURES)
    out = pack(raw, tmp_path / "out", "--classes", tmp_path / "classes.csv")
    assert [_label(out)[at] for at in ((0, 0), (7, 7), (20, 20))] == [0, 1, 255]


def test_the_order_of_painting(tmp_path: Path) -> None:
    small = box("car", 5, 5, 3, 3)
    raw = annotated_folder(tmp_path / "raw", {"a": [small, DOG]})
    tops = {order: _label(pack(raw, tmp_path / order, "--paint", order))[6, 6] for order in ("file", "area", "class")}
    assert tops == {"file": 2, "area": 1, "class": 2}


def test_bad_files_are_named_in_the_plan(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR], "b": [CAR], "c": [CAR], "d": None, "e": [CAR]})
    (raw / "b.json").write_text("{")
    (raw / "c.json").write_text(labelme_text([CAR], (5, 5)))
    (raw / "z.json").write_text(labelme_text([CAR]))
    errors = errors_of(1, "build", "--dry-run", raw, tmp_path / "out")
    for words in (
        "b.json: is not valid JSON",
        "c.json: is of a picture of 5x5, and the picture is 24x36",
        "d.png: has no label with the key 'd'",
        "z.json: has no image",
    ):
        assert words in errors, words
    options = ("--missing", "keep", "--on-bad", "skip")
    out = pack(raw, tmp_path / "out", *options)
    assert {split.rows for split in Manifest.load(out).splits} == {3}


@pytest.mark.parametrize("given", [SIZE, None])
def test_a_plan_reads_a_good_file_once_before_the_sample(
    tmp_path: Path, given: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = annotated_folder(tmp_path / "raw", {key: [box("car", 1, 1, 2, 2)] for key in "abcde"})
    for key in "abcde" if given is None else "":
        (raw / f"{key}.json").write_text(labelme_text([], imageHeight=None, imageWidth=None))
    (raw / "b.json").write_text("[")
    read = list[str]()

    def counted(folder: FolderSource, part: str) -> tuple[bytes, str]:
        read.append(part)
        return read_identified(folder, part)

    monkeypatch.setattr(annotated, "read_identified", counted)
    settings = {"raw": str(raw), "out": str(tmp_path / "out"), "workers": "1", "on-bad": "skip"}
    plan = make_plan(Request.from_settings(effective({**settings, "annotations": "{key}.json"})))
    assert len(plan.rejects) == 1
    assert Counter(read) == dict.fromkeys([f"{key}.json" for key in "abcde"], 2)  # again: a sample, and what is bad


def test_known_sizes_are_those_of_their_files() -> None:
    pictures = {f"{n}.json": (n % 70 + 1, 5) if n % 3 else None for n in range(999)}
    known = KnownSizes(pictures.items())
    assert {part: known.of(part) for part in pictures} == {part: size or (0, 0) for part, size in pictures.items()}
    assert known.of("x.json") is None
    assert KnownSizes([("huge.json", (1 << 40, 1))]).of("huge.json") is None


def test_what_is_lost_is_a_note_of_its_row(tmp_path: Path) -> None:
    outside = box("dog", 90, 90, 3, 3)
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR, outside, box("car", 0, 0, 12, 12)], "b": [DOG]})
    built = run("build", "--json", raw, tmp_path / "out")
    facts = json.loads(built.stdout)
    note = "1 object hidden by others; 1 object without a pixel"
    assert facts["notes"] == [{"split": "all", "key": "a", "note": note}]
    lost = {"objects hidden by others": 1, "objects without a pixel": 1}
    assert facts["note_totals"] == {"objects painted": 2, **lost, "pixels under other objects": 100}
    again = run("build", raw, tmp_path / "out")
    assert "2 of 4 objects painted, 2 reused" in again.stdout
    assert "in all rows: 2 objects painted, 100 pixels under other objects, 1 object hidden by others" in again.stderr
    remarks = load_remarks(tmp_path / "out", Manifest.load(tmp_path / "out"))
    assert remarks is not None
    assert "100 pixels under other objects" in remarks.totals


def test_objects_that_the_stored_size_loses_are_a_note_of_their_row(tmp_path: Path) -> None:
    wire, post, car = box("wire", 0, 0, 1, 36), box("post", 0, 4, 24, 1), box("car", 8, 8, 4, 4)
    raw = annotated_folder(tmp_path / "raw", {"a": [wire, post, car], "b": [wire, car], "c": [car]})
    half = ("--size", "12x18")  # every second row and column is taken, from 1 on
    facts = json_of("build", "--json", *half, raw, tmp_path / "out")
    notes = {each["key"]: each["note"] for each in facts["notes"]}
    assert notes["a"] == "2 objects lost by the stored size"
    assert notes["b"] == "1 object lost by the stored size"
    assert "c" not in notes
    totals = {"objects painted": 3, "objects lost by the stored size": 3, "pixels under other objects": 1}
    assert facts["note_totals"] == totals
    for options in (("--fit", "tile", *half), ("--size", "30x40")):
        facts = json_of("build", "--json", *options, raw, tmp_path / options[1])
        assert facts["note_totals"] == {"objects painted": 6, "pixels under other objects": 1}


def test_every_object_is_visible_or_counted(tmp_path: Path) -> None:
    random = Random(8)
    pictures = {f"p{number}": [_any_shape(random) for _ in range(random.randrange(12))] for number in range(12)}
    options = ("--field", "instance=ids", "--paint", "area")
    raw, out = annotated_folder(tmp_path / "raw", pictures), tmp_path / "out"
    facts = json_of("build", "--json", *options, raw, out)
    every = sum(map(len, pictures.values()))
    assert sum(count for what, count in facts["note_totals"].items() if what.startswith("objects ")) == every
    rows = open_dataset(out, "all", fields=("instance",))
    notes = {
        note.key: sum(map(int, re.findall(r"(\d+) objects? ", note.text)))
        for path in out.glob("shards/*.receipt.json")
        for note in Receipt.load(path).notes
    }
    for number in range(len(rows)):
        visible = len(set(np.unique(np.asarray(rows[number][0])).tolist()) - {0})
        key = rows.key(number)
        assert visible + notes.get(key.removeprefix("all/"), 0) == len(pictures[key.removeprefix("all/")]), key
    assert sum(notes.values()) > 10


def test_a_picture_with_tiles_in_several_shards_is_counted_once(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES)
    options = ("--fit", "tile", "--size", "12x12", "--shard-size", "2KB")
    facts = json_of("build", "--json", *options, raw, tmp_path / "out")
    assert facts["shards"] > 3
    assert facts["note_totals"] == {"objects painted": 4, "pixels under other objects": 50}
    assert facts["noted_rows"] == 0
    assert run("verify", "--deep", tmp_path / "out").exit_code == 0


def test_objects_of_other_fields_than_the_label_are_counted(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR, box("wheel", 2, 2, 3, 3), box("wheel", 90, 90, 3, 3)]})
    (tmp_path / "classes.txt").write_text("background\ncar\n")
    parts = '{"name": "parts", "kind": "multilabel", "classes": ["wheel"]}'
    built = run("build", "--json", "--classes", tmp_path / "classes.txt", "--field", parts, raw, tmp_path / "out")
    assert json.loads(built.stdout)["note_totals"] == {"objects painted": 2, "objects without a pixel": 1}


def _any_shape(random: Random) -> Shape:
    kind = random.choice(["rectangle", "polygon", "circle", "line", "cube"])
    points = [[random.uniform(-20, 50), random.uniform(-20, 40)] for _ in range(random.choice([2, 2, 3, 5]))]
    return {"label": random.choice("abc"), "shape_type": kind, "points": points}


@pytest.mark.parametrize("size", [(36, 24), (24, 36)])
def test_a_picture_that_exif_turns_is_painted_upright_or_turned_with_it(tmp_path: Path, size: tuple[int, int]) -> None:
    stored = np.zeros((24, 36, 3), np.uint8)
    stored[2:5, 20:30] = 255
    upright = np.rot90(stored, -1)
    inside = np.argwhere((upright if size == (36, 24) else stored)[..., 0])
    (top, left), (bottom, right) = inside.min(0).tolist(), inside.max(0).tolist()
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.png").write_bytes(png(stored.reshape(24, -1), 8, 2, chunk(b"eXIf", exif(6))))
    shape = box("car", top, left, bottom - top + 1, right - left + 1)
    (tmp_path / "raw/a.json").write_text(labelme_text([shape], size))
    out = pack(tmp_path / "raw", tmp_path / "out", "--field", "parts=multilabel")
    image, label, parts = map(np.asarray, open_dataset(out, fields=("image", "label", "parts"), label="index")[0])
    np.testing.assert_array_equal(image[0], upright[..., 0])
    np.testing.assert_array_equal(label, upright[..., 0] > 0)
    np.testing.assert_array_equal(parts[0], upright[..., 0] > 0)


@pytest.mark.parametrize(("size", "wire"), [((36, 24), (0, 0, 1, 24)), ((24, 36), (0, 0, 24, 1))])
def test_objects_are_lost_as_upright_pictures_lose_them(
    tmp_path: Path, size: tuple[int, int], wire: tuple[int, int, int, int]
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.png").write_bytes(png(np.zeros((24, 108), np.uint8), 8, 2, chunk(b"eXIf", exif(6))))
    (tmp_path / "raw/a.json").write_text(labelme_text([box("wire", *wire), box("wire", 9, 9, 9, 9)], size))
    built = run("build", "--json", "--size", "12x24", tmp_path / "raw", tmp_path / "out")  # without the top row
    assert json.loads(built.stdout)["note_totals"] == {"objects painted": 1, "objects lost by the stored size": 1}


@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop-or-pad", "shorter-side"])
def test_every_object_is_visible_or_counted_at_the_stored_size(tmp_path: Path, fit: str) -> None:
    random = Random(8)
    pictures = {f"p{number}": [_any_box(random) for _ in range(12)] for number in range(8)}
    raw, out = annotated_folder(tmp_path / "raw", pictures), tmp_path / "out"
    built = run("build", "--json", "--field", "instance=ids", "--size", "9x11", "--fit", fit, raw, out)
    totals = json.loads(built.stdout)["note_totals"]
    assert sum(count for what, count in totals.items() if what.startswith("objects ")) == 8 * 12
    data = open_dataset(out, "all", fields=("instance",))
    visible = sum(len(set(np.unique(np.asarray(data[row][0])).tolist()) - {0}) for row in range(len(data)))
    assert visible == totals["objects painted"]


def _any_box(random: Random) -> Shape:
    height, width = random.choice([(1, 9), (9, 1), (2, 2), (6, 9)])
    return box(random.choice("abc"), random.randrange(-5, 24), random.randrange(-5, 36), height, width)


def test_a_list_of_labels_gives_the_order_of_the_classes(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", PICTURES)
    (raw / "labels.txt").write_text("__ignore__\n_background_\ndog\nbird\ncar\n")
    out = pack(raw, tmp_path / "out")
    assert class_names(out) == ("_background_", "dog", "bird", "car")
    assert _label(out)[0, 0] == 3


def test_another_list_of_names_builds_everything_again(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", dict.fromkeys("ab"), "images/{}.png")
    (tmp_path / "classes.csv").write_text("name,r,g,b\nbackground,0,0,0\ncar,9,0,0\ndog,0,9,0\n")
    for key in "ab":
        file = raw / f"labels/{key}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("0 0.1 0.1 0.9 0.1 0.9 0.9\n")
    for names, number in (("[car, dog]", 1), ("[dog, car]", 2)):
        (raw / "data.yaml").write_text(f"names: {names}\n")
        out = pack(raw, tmp_path / "out", "--classes", tmp_path / "classes.csv")
        assert np.unique(_label(out)).tolist() == [0, number]


def test_a_probe_proposes_options_that_pack_the_folder(tmp_path: Path) -> None:
    pictures = {f"p{number:02}": [CAR, DOG] for number in range(12)} | {"without": None}
    raw = annotated_folder(tmp_path / "raw", pictures, "images/{}.png", "labels/{}.json")
    probed = good("probe", "--write", tmp_path / "packer.toml", raw)
    assert "layout    labelme labels/{key}.json" in probed.stdout
    assert "objects   car 12, dog 12" in probed.stdout
    assert "decide    1 file without a partner" in probed.stdout
    facts = json_of("probe", "--json", raw)
    assert facts["annotations"] == "labels/{key}.json"
    out = pack(raw, tmp_path / "out", "--config", tmp_path / "packer.toml")
    assert sum(split.rows for split in Manifest.load(out).splits) == 12
    assert run("probe", tmp_path / "raw" / "labels").exit_code == 1


def test_annotations_of_which_nothing_is_painted_are_refused(tmp_path: Path) -> None:
    """Objects outside of their pictures are known when they are painted: a build and a commit publish nothing."""
    raw = annotated_folder(tmp_path / "raw", {"a": [box("car", 90, 90, 3, 3)], "b": []})
    words = "no object of the annotations can be painted: 1 object without a pixel"
    assert words in run("build", raw, tmp_path / "out").stderr
    assert not (tmp_path / "out/manifest.json").exists()
    assert run("plan", raw, tmp_path / "plan").exit_code == 0
    assert run("build-part", "--plan", tmp_path / "plan", "--part", "1/1", tmp_path / "parts").exit_code == 0
    assert words in run("commit", "--plan", tmp_path / "plan", tmp_path / "parts").stderr
    annotated_folder(raw, {"b": [CAR]})
    pack(raw, tmp_path / "out")


def test_annotations_that_the_tool_itself_does_not_paint_are_refused_by_the_plan(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [{"label": "car", "points": [[1, 1], [5, 5]]}]})
    words = "no object of the annotations can be painted: 1 object of the kind polygon with 2 points"
    assert words in run("plan", raw, tmp_path / "plan").stderr
    assert words in json_of("probe", "--json", raw)["to_decide"][0]


@pytest.mark.parametrize("twice", ["shapes", "label"])
def test_a_key_that_occurs_twice_in_a_file_is_refused(tmp_path: Path, twice: str) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR], "b": [DOG]})
    for key in "ab":
        text = (raw / f"{key}.json").read_text(encoding="utf-8")
        other = '"shapes": [], "shapes"' if twice == "shapes" else '"label": "cat", "label"'
        (raw / f"{key}.json").write_text(text.replace(f'"{twice}"', other, 1), encoding="utf-8")
    refused = run("build", raw, tmp_path / "out")
    words = f"2 labels: a table in which the key {twice!r} occurs twice. Keep one; all: a.json, b.json"
    assert words in refused.output


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("\ud800x", "with the character \\ud800"),
        ("a\0b", "with the character \\u0000"),
        ("\x1b[31m", "with the character \\u001b"),
        ("a\nb", "with the character \\u000a"),
        ("  ", "which is not a name"),
    ],
)
def test_a_category_that_cannot_be_the_name_of_a_class_makes_its_picture_bad(
    tmp_path: Path, name: str, why: str
) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [box(name, 0, 0, 9, 9)], "b": [DOG]})
    words = f"a.json: has the category {name!r}, {why}; rename it"
    assert words in run("build", raw, tmp_path / "out").stderr
    assert words in run("probe", raw).stdout
    assert class_names(pack(raw, tmp_path / "out", "--on-bad", "skip")) == ("background", "dog")


def test_the_names_of_tables_are_those_that_classes_can_have(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [DOG]})
    (tmp_path / "x.json").write_text('["dog", "\\ud800"]')
    refused = run("build", "--classes", tmp_path / "x.json", raw, tmp_path / "out")
    assert "x.json: 1: the name of a class has the character \\ud800; rename it" in refused.stderr
    (raw / "labels.txt").write_text("dog\n\x1b[31mcat\n")
    refused = run("build", raw, tmp_path / "out")
    assert "labels.txt: has the category '\\x1b[31mcat', with the character \\u001b" in refused.stderr
    with pytest.raises(UsageError, match="has the character"):
        load_class_table(None, ClassTable((SegClass("a\nb"),)))


@pytest.mark.parametrize(
    ("pixels", "setting"),
    [
        (np.zeros((*SIZE, 8), np.uint8), 'bands = "all"'),
        (np.full((*SIZE, 1), 9, np.uint16), 'image-range = "0,65535"'),
    ],
)
def test_probe_proposes_how_images_with_annotations_are_stored(
    tmp_path: Path, pixels: NDArray[Any], setting: str
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.tif").write_bytes(blocks_tiff(pixels))
    (tmp_path / "raw/a.json").write_text(labelme_text([CAR]))
    (tmp_path / "packer.toml").write_text(json_of("probe", "--json", tmp_path / "raw")["config"])
    assert setting in (tmp_path / "packer.toml").read_text()
    pack(tmp_path / "raw", tmp_path / "out", "--config", tmp_path / "packer.toml")


def test_a_file_of_0_bytes_is_refused_and_an_empty_list_is_background(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR], "b": []})
    assert not _label(pack(raw, tmp_path / "out"), 1).any()
    (raw / "b.json").write_bytes(b"")
    words = "b.json: is empty; a file for a picture without objects has an empty list of them"
    assert words in run("build", raw, tmp_path / "out").stderr
