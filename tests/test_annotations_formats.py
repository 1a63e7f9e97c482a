"""Packs of folders of Cityscapes, Pascal VOC, LabelMe of the web, Mapillary and GeoJSON, from end to end."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from annotated_folders import class_names
from conftest import errors_of, json_of, pack, write_png
from facts.write_facts import read_facts, unpacked
from numpy.typing import NDArray

from packer.annotations.cityscapes import CATEGORIES
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
POINTS = [[2, 2], [7, 2], [7, 6], [2, 6]]


def _picture(path: Path, size: tuple[int, int] = (9, 12)) -> None:
    write_png(path, np.full((*size, 3), 90, np.uint8))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _label(out: Path, split: str = "all") -> NDArray[Any]:
    return np.asarray(open_dataset(out, split, label="index")[0][1])


@pytest.mark.parametrize("labels", ["gtFine", "gtCoarse"])
def test_a_folder_of_cityscapes_becomes_its_label_ids(tmp_path: Path, labels: str) -> None:
    case, stem = read_facts("cityscapes")[0], "aachen/aachen_000000_000019"
    size = (case["document"]["imgHeight"], case["document"]["imgWidth"])
    for split in ("train", "val"):
        _picture(tmp_path / f"raw/leftImg8bit/{split}/{stem}_leftImg8bit.png", size)
        _write(tmp_path / f"raw/{labels}/{split}/{stem}_{labels}_polygons.json", json.dumps(case["document"]))
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == CATEGORIES
    np.testing.assert_array_equal(_label(out, "val"), unpacked(case["label"], size, "u1"))
    notes = json_of("build", "--json", tmp_path / "raw", tmp_path / "again")["notes"]
    assert all("object" in each["note"] for each in notes)


@pytest.mark.parametrize("form", ["voc", "labelme_web", "mapillary"])
def test_a_file_next_to_a_picture_becomes_its_label(tmp_path: Path, form: str) -> None:
    _picture(tmp_path / "raw/a.png")
    if form == "mapillary":
        objects = [{"label": "nature--sky", "polygon": POINTS}]
        _write(tmp_path / "raw/a.json", json.dumps({"height": 9, "width": 12, "objects": objects}))
    else:
        one = "".join(f"<x{i}>{x + 1}</x{i}><y{i}>{y + 1}</y{i}>" for i, (x, y) in enumerate(POINTS, 1))
        web = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in POINTS)
        polygon = one if form == "voc" else web
        text = f"<object><name>nature--sky</name><polygon>{polygon}</polygon></object>"
        _write(tmp_path / "raw/a.xml", f"<annotation>{text}</annotation>")
    out = pack(tmp_path / "raw", tmp_path / "out")
    more = form == "voc"  # OpenCV paints the outline, too
    expected = np.zeros((9, 12), np.uint8)
    expected[2 : 6 + more, 2 : 7 + more] = 1
    assert class_names(out) == ("background", "nature--sky")
    np.testing.assert_array_equal(_label(out), expected)


def test_features_lie_on_the_ground_of_their_picture(tmp_path: Path) -> None:
    case = read_facts("geojson")[0]
    size = (case["size"][0], case["size"][1])
    _write(tmp_path / "raw/a.geojson", case["geojson"])
    (tmp_path / "raw/a.tif").write_bytes(b64decode(case["tif"]))
    out = pack(tmp_path / "raw", tmp_path / "out")
    assert class_names(out) == ("background", "tree")
    np.testing.assert_array_equal(_label(out), unpacked(case["inside"], (-1, size[1]), "u1").reshape(-1, *size).max(0))


def test_features_over_a_picture_without_ground_are_refused_by_name(tmp_path: Path) -> None:
    _write(tmp_path / "raw/a.geojson", read_facts("geojson")[0]["geojson"])
    _picture(tmp_path / "raw/a.png")
    assert "a.geojson: its picture is not a TIFF" in errors_of(1, "build", tmp_path / "raw", tmp_path / "out")


def test_parts_of_ade20k_lie_on_their_objects(tmp_path: Path) -> None:
    wheel = [[3, 3], [5, 3], [5, 5], [3, 5]]
    objects = [
        {
            "name": name,
            "polygon": {"x": [x for x, _ in ring], "y": [y for _, y in ring]},
            "parts": {"part_level": level},
        }
        for name, ring, level in (("wheel", wheel, 1), ("car", POINTS, 0))
    ]
    _picture(tmp_path / "raw/training/a.png")
    annotation = {"imsize": [9, 12, 3], "scene": [], "object": objects}
    _write(tmp_path / "raw/training/a.json", json.dumps({"annotation": annotation}))
    options = ("--image", "{split}/{key}.png", "--annotations", "{split}/{key}.json", "--field", "parts=multilabel")
    out = pack(tmp_path / "raw", tmp_path / "out", *options)
    label, parts = map(np.asarray, open_dataset(out, "training", label="index", fields=("label", "parts"))[0])
    assert [label[at] for at in ((2, 2), (3, 3), (0, 0))] == [1, 2, 0]
    assert parts[:, 3, 3].tolist() == [1, 1]


def test_pictures_of_parts_of_ade20k_are_a_field_of_classes(tmp_path: Path) -> None:
    car, wheel = np.zeros((2, 9, 12, 3), np.uint8)
    car[2:6, 2:7], wheel[3:5, 3:5] = (10, 20, 1), (0, 7, 2)  # class = red // 10 * 256 + green; blue is the instance
    _picture(tmp_path / "raw/training/a.jpg")
    write_png(tmp_path / "raw/training/a_seg.png", car)
    write_png(tmp_path / "raw/training/a_parts_1.png", wheel)
    field = {
        "name": "parts",
        "from": "{split}/{key}_parts_1.png",
        "kind": "classes",
        "codec": "ade20k",
        "form": "index",
    }
    text = json.dumps({**field, "classes": 9, "unknown": "ignore"})
    options = ("--image", "{split}/{key}.jpg", "--label", "{split}/{key}_seg.png", "--label-codec", "ade20k")
    out = pack(tmp_path / "raw", tmp_path / "out", *options, "--classes", "277", "--labels", "index", "--field", text)
    label, parts = map(np.asarray, open_dataset(out, "training", label="index", fields=("label", "parts"))[0])
    assert np.unique(label).tolist() == [0, 276]
    np.testing.assert_array_equal(parts == 7, wheel[..., 1] == 7)
