"""Exports of labelling tools become packs without an option: YOLO, Supervisely, masks of CVAT and of Roboflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from annotated_folders import class_names
from conftest import errors_of, good, json_of, pack, run, write_png
from numpy.typing import NDArray
from PIL import Image

from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
SIZE = (20, 30)
PICTURE = np.full((*SIZE, 3), 90, np.uint8)
LABEL = np.repeat(np.arange(3, dtype=np.uint8), 10)[None].repeat(20, 0)


def _label(out: Path, split: str) -> NDArray[Any]:
    return np.asarray(open_dataset(out, split, label="index")[0][1])


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _jpeg(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(PICTURE).save(path)


@pytest.mark.parametrize(
    ("image", "label"),
    [("images/train/a.jpg", "labels/train/a.txt"), ("train/images/a.rf.1.jpg", "train/labels/a.rf.1.txt")],
)
def test_outlines_of_yolo_take_their_names_from_data_yaml(tmp_path: Path, image: str, label: str) -> None:
    _jpeg(tmp_path / "raw" / image)
    _text(tmp_path / "raw" / label, "1 0 0 0.3 0 0.3 0.95 0 0.95\n0 0.9 0.9 0.1 0.1\n")
    _text(tmp_path / "raw" / "data.yaml", "train: images/train\nnc: 2\nnames: ['sky', 'car']\n")
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == ("background", "sky", "car")
    assert _label(out, "train")[0].tolist() == [2] * 10 + [0] * 20
    assert "1 object with a box and no outline" in run("build", tmp_path / "raw", tmp_path / "o2").output


def test_names_of_yolo_may_be_in_a_file_of_any_name(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    _jpeg(raw / "images" / "train" / "a.jpg")
    _text(raw / "labels" / "train" / "a.txt", "1 0 0 0.3 0 0.3 0.95 0 0.95\n")
    for name in ("coco8-seg.yaml", "same.yml"):
        _text(raw / name, "path: coco8\nnames:\n  0: sky\n  1: car\n")
    _text(raw / "args.yaml", "task: segment\nmodel: names.pt\n")
    assert class_names(pack(raw, tmp_path / "out")) == ("background", "sky", "car")
    _text(raw / "old.yaml", "names: [car, sky]\n")
    refused = run("build", raw, tmp_path / "other")
    assert "files list different categories; keep one of them, or call it data.yaml" in refused.stderr
    assert "old.yaml has car, sky" in refused.stderr
    _text(raw / "old.yaml", "names: [")
    assert "old.yaml: has no names of classes" in run("build", raw, tmp_path / "other").stderr
    _text(raw / "data.yaml", "names: [tree, car]\n")
    assert class_names(pack(raw, tmp_path / "other")) == ("background", "tree", "car")


def test_a_project_of_supervisely_has_a_split_for_each_data_set(tmp_path: Path) -> None:
    points = {"exterior": [[0, 0], [9, 0], [9, 19], [0, 19]], "interior": []}
    objects = [{"classTitle": "car", "geometryType": "polygon", "points": points}]
    document = {"size": {"height": SIZE[0], "width": SIZE[1]}, "objects": objects}
    for name in ("first", "second"):
        _jpeg(tmp_path / "raw" / name / "img" / "a.jpg")
        _text(tmp_path / "raw" / name / "ann" / "a.jpg.json", json.dumps(document))
    _text(tmp_path / "raw" / "meta.json", json.dumps({"classes": [{"title": "sky"}, {"title": "car"}]}))
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == ("background", "sky", "car")
    for split in ("first", "second"):
        assert _label(out, split)[0].tolist() == [2] * 10 + [0] * 20


def test_segmentation_masks_of_cvat_take_their_colours_from_labelmap_txt(tmp_path: Path) -> None:
    colours = np.array([[0, 0, 0], [250, 50, 83], [61, 61, 245]], np.uint8)
    _jpeg(tmp_path / "raw" / "JPEGImages" / "a.jpg")
    for folder in ("SegmentationClass", "SegmentationObject"):
        write_png(tmp_path / "raw" / folder / "a.png", colours[LABEL])
    _text(tmp_path / "raw" / "ImageSets" / "Segmentation" / "default.txt", "a\n")
    lines = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncar:250,50,83::\nsky:61,61,245::\n"
    _text(tmp_path / "raw" / "labelmap.txt", lines)
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == ("background", "car", "sky")
    np.testing.assert_array_equal(_label(out, "default"), LABEL)


def test_masks_of_roboflow_take_their_values_from_the_table_of_each_split(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        _jpeg(tmp_path / "raw" / split / "a_jpg.rf.1.jpg")
        write_png(tmp_path / "raw" / split / "a_jpg.rf.1_mask.png", LABEL)
        _text(tmp_path / "raw" / split / "_classes.csv", "Pixel Value, Class\n0, background\n1, cat\n2, dog\n")
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == ("background", "cat", "dog")
    np.testing.assert_array_equal(_label(out, "valid"), LABEL)
    _text(tmp_path / "raw" / "valid" / "_classes.csv", "Pixel Value, Class\n0, background\n1, dog\n2, cat\n")
    refused = run("build", tmp_path / "raw", tmp_path / "other")
    assert "has several class tables; choose one with --classes" in refused.stderr


def _box(label: str, left: int) -> str:
    return f'<box label="{label}" xtl="{left}" ytl="0" xbr="{left + 10}" ybr="20"/>'


HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version><meta/>'


def _cvat(raw: Path, file: str = "annotations.xml", folder: str = "photos") -> Path:
    for name in ("a", "b"):
        _jpeg(raw / folder / f"{name}.jpg")
    images = "".join(
        f'<image name="{name}.jpg" width="30" height="20">{_box("sky", 0)}{_box("car", left)}</image>\n'
        for name, left in [("a", 10), ("b", 20)]
    )
    _text(raw / file, f"{HEAD}{images}</annotations>")
    return raw


def _label_studio(raw: Path, file: str = "export.json") -> Path:
    for name in ("a", "b", "c"):
        _jpeg(raw / "photos" / f"{name}.jpg")
    points = [[0, 0], [100 / 3, 0], [100 / 3, 100], [0, 100]]
    value = {"points": points, "polygonlabels": ["car"]}
    region = {"id": "r", "type": "polygonlabels", "value": value, "original_width": 30, "original_height": 20}
    made: dict[str, Any] = {"a": [{"result": [region]}], "b": [{"result": []}], "c": []}
    tasks = [
        {"id": number, "annotations": annotations, "data": {"image": f"/data/local-files/?d=photos/{name}.jpg"}}
        for number, (name, annotations) in enumerate(made.items())
    ]
    _text(raw / file, json.dumps(tasks))
    return raw


def _probed(raw: Path, config: Path) -> Any:
    """Write the proposal of a probe, and return its facts."""
    good("probe", "--write", config, raw)
    return json_of("probe", "--json", raw)


def test_a_file_of_cvat_for_images_labels_many_pictures(tmp_path: Path) -> None:
    raw = _cvat(tmp_path / "raw")
    assert _probed(raw, tmp_path / "packer.toml")["objects"] == {"sky": 2, "car": 2}
    out = pack(raw, tmp_path / "out", "--config", tmp_path / "packer.toml")
    assert class_names(out) == ("background", "car", "sky")
    assert _label(out, "all")[0].tolist() == [2] * 10 + [1] * 10 + [0] * 10
    again = run("build", "--config", out / "packer.toml", raw, out)
    assert "2 reused" in again.stdout
    _text(raw / "annotations.xml", f'{HEAD}<track id="0" label="car"/></annotations>')
    refused = run("build", "--annotations", "annotations.xml", raw, tmp_path / "other")
    assert "is CVAT for video; export the task as CVAT for images" in refused.stderr
    assert "is CVAT for video; export the task as CVAT for images" in run("probe", raw).stdout


def test_a_file_of_label_studio_labels_many_pictures(tmp_path: Path) -> None:
    raw = _label_studio(tmp_path / "raw")
    assert _probed(raw, tmp_path / "packer.toml")["objects"] == {"car": 1}
    out = pack(raw, tmp_path / "out", "--config", tmp_path / "packer.toml", "--missing", "keep")
    assert class_names(out) == ("background", "car")
    assert _label(out, "all")[0].tolist() == [1] * 10 + [0] * 20
    missing = run("build", "--annotations", "export.json", raw, tmp_path / "other")
    assert "photos/c.jpg" in missing.stderr


def test_files_of_several_tasks_are_proposed_together(tmp_path: Path) -> None:
    for task in ("task_1", "task_2"):
        _cvat(tmp_path / "raw", f"{task}/annotations.xml", f"{task}/images")
    facts = _probed(tmp_path / "raw", tmp_path / "packer.toml")
    assert (facts["annotations"], facts["objects"]) == ("*/annotations.xml", {"sky": 4, "car": 4})
    assert len(open_dataset(pack(tmp_path / "raw", tmp_path / "out", "--config", tmp_path / "packer.toml"), "all")) == 4


def test_a_probe_asks_which_of_several_annotations_count(tmp_path: Path) -> None:
    raw = _label_studio(_cvat(tmp_path / "raw"))
    facts = _probed(raw, tmp_path / "packer.toml")
    there = "other files of annotations are there, too, and this proposal does not read them: export.json"
    assert (facts["annotations"], facts["to_decide"][0]) == ("annotations.xml", there)
    refused = run("build", "--config", tmp_path / "packer.toml", raw, tmp_path / "out")
    assert there in refused.stderr
    (raw / "export.json").unlink()
    (raw / "photos").rename(raw / "images")
    for name in ("a", "b"):
        write_png(raw / "masks" / f"{name}.png", LABEL)
    assert "label pictures are there, too" in run("probe", raw).stdout
    _text(raw / "annotations.xml", f"{HEAD}<image")  # what cannot be read does not hide the label pictures
    assert "masks/{key}" in run("probe", raw).stdout


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("a.xml", f"{HEAD}<image name='a.jpg'", "is not valid XML"),
        ("a.xml", f"<!DOCTYPE x [<!ENTITY e 'x'>]>{HEAD}</annotations>", "is XML with a document type"),
        ("a.json", '[{"data": {"image": "a.jpg"}, "annotations": []}, ' + "[" * 500_000, "is nested too deeply"),
        ("a.json", '[{"data": {"image": "a.jpg"}, "annotations": []}, NaN]', "has the number NaN"),
    ],
)
def test_a_probe_says_why_files_of_tools_cannot_be_read(tmp_path: Path, file: str, text: str, reason: str) -> None:
    _jpeg(tmp_path / "raw" / "photos" / "a.jpg")
    _text(tmp_path / "raw" / file, text)
    probed = run("probe", tmp_path / "raw")
    assert "a build refuses this proposal" in probed.stdout
    assert f"{file}: {reason}" in probed.stdout


def test_coco_files_of_roboflow_lie_in_the_folders_of_splits(tmp_path: Path) -> None:
    ring = [0, 0, 10, 0, 10, 20, 0, 20]
    document = {
        "images": [{"id": 0, "file_name": "a_jpg.rf.1.jpg", "height": 20, "width": 30}],
        "categories": [{"id": 0, "name": "animals"}, {"id": 1, "name": "cat"}],
        "annotations": [{"id": 0, "image_id": 0, "category_id": 1, "segmentation": [ring]}],
    }
    for split in ("train", "valid"):
        _jpeg(tmp_path / "raw" / split / "a_jpg.rf.1.jpg")
        _text(tmp_path / "raw" / split / "_annotations.coco.json", json.dumps(document))
    options = ("--annotations", "{split}/_annotations.coco.json", "--image", "{split}/{key}")
    out = pack(tmp_path / "raw", tmp_path / "out", *options)
    assert class_names(out) == ("background", "animals", "cat")
    assert _label(out, "valid")[0].tolist() == [2] * 10 + [0] * 20


QUADRILATERALS = "0 0.1 0.1 0.5 0.15 0.45 0.6 0.05 0.55\n1 0.2 0.3 0.5 0.35 0.45 0.6 0.15 0.55\n"
KEYPOINTS = "0 0.5 0.5 0.4 0.4 0.4 0.4 0.6 0.6 0 0\n0 0.4 0.4 0.4 0.4 0.3 0.3 0.5 0.5 0.4 0.4\n"
ONE_OUTSIDE = KEYPOINTS * 2 + "0 0.4 0.4 0.4 0.4 0.3 0.3 0.5 0.5 0.7 0.4\n"
VISIBLE = "0 0.5 0.5 0.4 0.4 0.4 0.4 2 0.6 0.6 1 0 0 0\n"
OUTLINES = "0 0.1 0.1 0.9 0.1 0.5 0.9\n"
NAMED = ((), ("--annotations", "{key}.json"), ("--annotations", "a.json"))


def _yolo(raw: Path, text: str, more: str = OUTLINES) -> Path:
    """Write two pictures with the same lines, the first one with more."""
    for key, lines in (("a", text + more), ("b", text)):
        _jpeg(raw / "images" / f"{key}.jpg")
        _text(raw / "labels" / f"{key}.txt", lines)
    return raw


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (QUADRILATERALS, "oriented boxes: every object has exactly four points"),
        (f"{QUADRILATERALS}0 0.5 0.5 0.2 0.2\n", "oriented boxes: every object has exactly four points"),
        (KEYPOINTS, "boxes with 3 keypoints: every object has 11 numbers"),
        (ONE_OUTSIDE, "boxes with 3 keypoints: every object has 11 numbers"),
    ],
)
def test_objects_of_yolo_that_look_like_no_outlines_are_a_question(tmp_path: Path, text: str, words: str) -> None:
    raw = _yolo(tmp_path / "raw", text, "")
    errors = errors_of(1, "build", raw, tmp_path / "out")
    assert words in errors
    assert "--annotations 'outlines:labels/{key}.txt'" in errors
    assert run("build", "--annotations", "labels/{key}.txt", raw, tmp_path / "out").exit_code == 1
    proposed = json_of("probe", "--json", raw)
    assert words in proposed["to_decide"][0]
    assert 'decide = ["are these outlines?' in proposed["config"]
    assert 'annotations = "outlines:labels/{key}.txt"' in proposed["config"]
    pack(raw, tmp_path / "out", "--annotations", "outlines:labels/{key}.txt")


@pytest.mark.parametrize("text", [QUADRILATERALS, KEYPOINTS])
def test_objects_of_yolo_with_different_numbers_of_points_are_outlines(tmp_path: Path, text: str) -> None:
    raw = _yolo(tmp_path / "raw", text)
    assert json_of("probe", "--json", raw)["to_decide"] == []
    pack(raw, tmp_path / "out")


def test_probe_says_that_a_build_refuses_boxes_alone(tmp_path: Path) -> None:
    """It proposed to leave all pairs out with `on-bad`, which a build refuses."""
    raw = _yolo(tmp_path / "raw", "0 0.5 0.5 0.2 0.2\n", "")
    asked = json_of("probe", "--json", raw)["to_decide"]
    assert asked[0].startswith("a build refuses this proposal: every pair is bad, the first because labels/a.txt")
    assert not any("on-bad" in question for question in asked)
    assert run("build", "--on-bad", "skip", raw, tmp_path / "out").exit_code == 1


def test_kpt_shape_proves_that_objects_of_yolo_are_keypoints(tmp_path: Path) -> None:
    raw = _yolo(tmp_path / "raw", OUTLINES)
    _text(raw / "data.yaml", "kpt_shape: [5, 2]\nnames: {0: tool}\n")
    for command in (("build", raw, tmp_path / "out"), ("probe", raw)):
        assert "data.yaml: has kpt_shape, so the objects are boxes with keypoints" in errors_of(1, *command)


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("labels/a.txt", VISIBLE, "labels/a.txt has boxes with keypoints of YOLO"),
        ("labelTxt/a.txt", "imagesource:x\ngsd:0.1\n1 1 5 1 5 9 1 9 plane 0\n", "labelTxt/a.txt has oriented boxes"),
        ("via.json", '{"_via_settings": {}, "_via_img_metadata": {}}', "via.json is of VIA"),
        ("via.json", '{"a.jpg12": {"filename": "a.jpg", "size": 12, "regions": []}}', "via.json is of VIA"),
        ("via.json", '{"project": {"vid_list": []}, "file": {}, "metadata": {}, "view": {}}', "via.json is of VIA"),
        (
            "via.csv",
            "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n",
            "via.csv is of VIA",
        ),
        ("1-asset.json", '{"asset": {"name": "a.jpg"}, "regions": []}', "1-asset.json is of VoTT"),
        ("x.vott", '{"name": "x", "tags": [], "assets": {}}', "x.vott is of VoTT"),
        ("x.csv", '"image","xmin","ymin","xmax","ymax","label"\n', "x.csv is of VoTT"),
    ],
)
def test_files_of_tools_that_are_not_read_are_named(tmp_path: Path, path: str, text: str, words: str) -> None:
    _jpeg(tmp_path / "raw" / "images" / "a.jpg")
    _text(tmp_path / "raw" / path, text)
    for command in (("build", tmp_path / "raw", tmp_path / "out"), ("probe", tmp_path / "raw")):
        assert words in errors_of(1, *command)
    if path.endswith((".json", ".vott")):
        refused = run("build", "--annotations", path, tmp_path / "raw", tmp_path / "out")
        assert words.replace(" is of ", ": is of ") in refused.stderr


def test_files_of_one_picture_as_sa_1b_has_them_are_named(tmp_path: Path) -> None:
    raw, annotation = tmp_path / "raw", {"segmentation": {"size": [20, 30], "counts": "abc"}, "id": 5}
    image = {"image_id": 1, "width": 30, "height": 20, "file_name": "a.jpg"}
    _jpeg(raw / "a.jpg")
    _text(raw / "a.json", json.dumps({"image": image, "annotations": [annotation]}))
    for command in (("probe", raw), *(("build", *more, raw, tmp_path / "out") for more in NAMED)):
        assert "a.json" in (shown := run(*command).output)
        assert "of one picture, as files of SA-1B are" in shown
    _text(raw / "a.json", json.dumps({"images": [{**image, "id": 1}], "annotations": [annotation]}))
    refused = run("build", "--annotations", "a.json", raw, tmp_path / "out")
    assert "a.json: has an annotation without an image_id, at byte" in refused.stderr


def test_pictures_of_one_name_in_several_subsets_are_found_by_their_folders(tmp_path: Path) -> None:
    images = []
    for number, (subset, name) in enumerate((("Train", "a.png"), ("Validation", "a.png"), ("Train", "b.png"))):
        write_png(tmp_path / "raw/images" / subset / name, np.full((20, 30, 3), number, np.uint8))
        shape = f'<box label="l{number}" xtl="0" ytl="0" xbr="9" ybr="9" z_order="0"/>'
        images.append(f'<image id="{number}" name="{name}" subset="{subset}" width="30" height="20">{shape}</image>')
    text = f"<annotations><version>1.1</version>{''.join(images)}</annotations>"
    (tmp_path / "raw/annotations.xml").write_text(text)
    options = ("--annotations", "annotations.xml", "--image", "images/{split}/{key}.png")
    out = pack(tmp_path / "raw", tmp_path / "out", *options)
    for split, row, number in (("Train", 0, 0), ("Validation", 0, 1), ("Train", 1, 2)):
        image, label = open_dataset(out, split, label="index")[row]
        assert (int(image[0, 0, 0]), int(label[0, 0]) - 1) == (number, number)
    (tmp_path / "raw/annotations.xml").write_text(text.replace("Validation", "Train"))
    assert "the same file_name" in run("build", *options, tmp_path / "raw", tmp_path / "out").stderr
