"""Exports of labelling tools become packs without an option: YOLO, Supervisely, masks of CVAT and of Roboflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import pack, run, write_png
from numpy.typing import NDArray
from PIL import Image

from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")
SIZE = (20, 30)
PICTURE = np.full((*SIZE, 3), 90, np.uint8)
LABEL = np.repeat(np.arange(3, dtype=np.uint8), 10)[None].repeat(20, 0)


def _label(out: Path, split: str) -> NDArray[Any]:
    return np.asarray(open_dataset(out, split, label="index")[0][1])


def _names(out: Path) -> tuple[str, ...]:
    classes = Manifest.load(out).classes
    assert classes is not None
    return classes.names


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
    assert _names(out) == ("background", "sky", "car")
    assert _label(out, "train")[0].tolist() == [2] * 10 + [0] * 20
    assert "1 object with a box and no outline" in run("build", tmp_path / "raw", tmp_path / "o2").output


def test_a_project_of_supervisely_has_a_split_for_each_data_set(tmp_path: Path) -> None:
    points = {"exterior": [[0, 0], [9, 0], [9, 19], [0, 19]], "interior": []}
    objects = [{"classTitle": "car", "geometryType": "polygon", "points": points}]
    document = {"size": {"height": SIZE[0], "width": SIZE[1]}, "objects": objects}
    for name in ("first", "second"):
        _jpeg(tmp_path / "raw" / name / "img" / "a.jpg")
        _text(tmp_path / "raw" / name / "ann" / "a.jpg.json", json.dumps(document))
    _text(tmp_path / "raw" / "meta.json", json.dumps({"classes": [{"title": "sky"}, {"title": "car"}]}))
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert _names(out) == ("background", "sky", "car")
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
    assert _names(out) == ("background", "car", "sky")
    np.testing.assert_array_equal(_label(out, "default"), LABEL)


def test_masks_of_roboflow_take_their_values_from_the_table_of_each_split(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        _jpeg(tmp_path / "raw" / split / "a_jpg.rf.1.jpg")
        write_png(tmp_path / "raw" / split / "a_jpg.rf.1_mask.png", LABEL)
        _text(tmp_path / "raw" / split / "_classes.csv", "Pixel Value, Class\n0, background\n1, cat\n2, dog\n")
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert _names(out) == ("background", "cat", "dog")
    np.testing.assert_array_equal(_label(out, "valid"), LABEL)
    _text(tmp_path / "raw" / "valid" / "_classes.csv", "Pixel Value, Class\n0, background\n1, dog\n2, cat\n")
    refused = run("build", tmp_path / "raw", tmp_path / "other")
    assert "has several class tables; choose one with --classes" in refused.stderr


def _box(label: str, left: int) -> str:
    return f'<box label="{label}" xtl="{left}" ytl="0" xbr="{left + 10}" ybr="20"/>'


def test_a_file_of_cvat_for_images_labels_many_pictures(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _jpeg(tmp_path / "raw" / "photos" / f"{name}.jpg")
    images = "".join(
        f'<image name="photos/{name}.jpg" width="30" height="20">{_box("sky", 0)}{_box("car", left)}</image>\n'
        for name, left in [("a", 10), ("b", 20)]
    )
    head = '<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version><meta/>'
    _text(tmp_path / "raw" / "annotations.xml", f"{head}{images}</annotations>")
    out = pack(tmp_path / "raw", tmp_path / "out", "--annotations", "annotations.xml")
    assert _names(out) == ("background", "car", "sky")
    assert _label(out, "all")[0].tolist() == [2] * 10 + [1] * 10 + [0] * 10
    again = run("build", "--config", out / "packer.toml", tmp_path / "raw", out)
    assert "2 reused" in again.stdout
    _text(tmp_path / "raw" / "annotations.xml", f'{head}<track id="0" label="car"/></annotations>')
    refused = run("build", "--annotations", "annotations.xml", tmp_path / "raw", tmp_path / "other")
    assert "is CVAT for video; export the task as CVAT for images" in refused.stderr


def test_a_file_of_label_studio_labels_many_pictures(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        _jpeg(tmp_path / "raw" / "photos" / f"{name}.jpg")
    points = [[0, 0], [100 / 3, 0], [100 / 3, 100], [0, 100]]
    value = {"points": points, "polygonlabels": ["car"]}
    region = {"id": "r", "type": "polygonlabels", "value": value, "original_width": 30, "original_height": 20}
    tasks = [
        {"id": number, "data": {"image": f"/data/local-files/?d=photos/{name}.jpg"}, "annotations": annotations}
        for number, (name, annotations) in enumerate(
            [("a", [{"result": [region]}]), ("b", [{"result": []}]), ("c", [])]
        )
    ]
    _text(tmp_path / "raw" / "export.json", json.dumps(tasks))
    out = pack(tmp_path / "raw", tmp_path / "out", "--annotations", "export.json", "--missing", "keep")
    assert _names(out) == ("background", "car")
    assert _label(out, "all")[0].tolist() == [1] * 10 + [0] * 20
    missing = run("build", "--annotations", "export.json", tmp_path / "raw", tmp_path / "other")
    assert "photos/c.jpg" in missing.stderr


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
    assert _names(out) == ("background", "animals", "cat")
    assert _label(out, "valid")[0].tolist() == [2] * 10 + [0] * 20
