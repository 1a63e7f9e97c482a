"""`packer extract --layout`: other tools read the folders, and packing them again gives the same labels."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from conftest import NAMES, REPO, RawFolder, errors_of, good, pack, write_png
from numpy.typing import NDArray
from PIL import Image
from pycocotools.coco import COCO

from packer.cli.extract import LAYOUTS
from packer.packs.layouts import by_name
from readers import open_dataset

READERS = {
    "imagefolder": "Hugging Face transformers",
    "nnunet": "nnU-Net",
    "ultralytics": "Ultralytics",
    "voc": "MMSegmentation",
}
NAMED = [f"class_{number}" for number in range(4)]
SHARED_KEYS = ("coco", "imagefolder", "ultralytics")
"""The layouts with a folder for each split."""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack with classes and objects; some of these have holes, and some have two parts."""
    raw = tmp_path_factory.mktemp("layouts") / "raw"
    for number in range(6):
        random = np.random.default_rng(number)
        split, key = ("train", "val")[number > 3], f"scene_{number}"
        write_png(raw / split / "images" / f"{key}.png", random.integers(0, 255, (40, 56, 3), np.uint8))
        label, ids = np.zeros((40, 56), np.uint8), np.zeros((40, 56), np.uint8)
        for one in range(1, 4):
            top, left = random.integers(0, 24, 2)
            label[top : top + 12, left : left + 14] = ids[top : top + 12, left : left + 14] = one
        label[0, :5] = 255
        ids[label == 255] = 0
        write_png(raw / split / "labels" / f"{key}.png", label)
        write_png(raw / split / "inst" / f"{key}.png", ids)
    field = "instance=ids:{split}/inst/{key}.png"
    options = ("--labels", "index", "--classes", "4", "--ignore", "255", "--field", field)
    return pack(raw, raw.parent / "out", *options)


@pytest.fixture(scope="module")
def laid_out(objects: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {layout: tmp_path_factory.mktemp("layout") / layout for layout in LAYOUTS}
    for layout, folder in folders.items():
        good("extract", "--all", "--layout", layout, "--quiet", objects, folder)
    return folders


def rows(out: Path, split: str, *fields: str) -> dict[str, list[NDArray[Any]]]:
    data = open_dataset(out, split, fields=fields)
    return {data.key(row): [part.numpy() for part in data[row]] for row in range(len(data))}


def read(path: Path) -> NDArray[Any]:
    return np.asarray(Image.open(path))


def check_lines(lines: list[str]) -> None:
    """Check that a bridge has the names that lines import."""
    for module, names in re.findall(r"from (readers\.bridges\.\w+) import ([\w, ]+)", "\n".join(lines)):
        tree = ast.parse((REPO / f"{module.replace('.', '/')}.py").read_text())
        defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert set(names.split(", ")) <= defined, module


def test_coco_names_the_detectors(laid_out: dict[str, Path]) -> None:
    found = json.loads(good("probe", "--workers", "1", "--json", laid_out["coco"]).stdout)["trainers"]
    names = [trainer["name"] for trainer in found]
    assert names == ["torchvision Mask R-CNN", "Mask2Former of Hugging Face", "Detectron2"]
    assert {trainer["build"] for trainer in found} == {"--field instance=ids"}
    check_lines([line for trainer in found for line in trainer["lines"]])


def test_the_command_names_every_layout() -> None:
    assert tuple(sorted(by_name.LAYOUTS)) == LAYOUTS


def test_voc_has_palettes_lists_and_exact_labels(objects: Path, laid_out: dict[str, Path]) -> None:
    voc, keys = laid_out["voc"], []
    for split in ("train", "val"):
        stored = rows(objects, split, "image", "label")
        listed = (voc / "ImageSets" / "Segmentation" / f"{split}.txt").read_text().split()
        assert listed == list(stored)
        keys += listed
        for key, (image, label) in stored.items():
            with Image.open(voc / "SegmentationClass" / f"{key}.png") as picture:
                assert picture.mode == "P"
                assert np.array_equal(np.asarray(picture), label)
            apart = read(voc / "JPEGImages" / f"{key}.jpg").astype(int) - np.moveaxis(image, 0, 2)
            assert abs(apart).max() <= 4
            assert abs(apart).mean() < 1
    assert (voc / "ImageSets" / "Segmentation" / "trainval.txt").read_text().split() == keys
    assert (voc / "class_names.txt").read_text().split() == NAMED


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_coco_has_every_pixel_of_every_object(objects: Path, laid_out: dict[str, Path]) -> None:
    for split in ("train", "val"):
        coco = COCO(str(laid_out["coco"] / "annotations" / f"instances_{split}.json"))
        stored = rows(objects, split, "image", "label", "instance")
        assert len({entry["id"] for entry in coco.dataset["annotations"]}) == len(coco.dataset["annotations"])
        for entry in coco.dataset["images"]:
            image, label, ids = stored[Path(entry["file_name"]).stem]
            assert np.array_equal(read(laid_out["coco"] / split / entry["file_name"]), np.moveaxis(image, 0, 2))
            found = np.zeros_like(ids)
            for number, one in enumerate(coco.loadAnns(coco.getAnnIds(entry["id"])), 1):
                mask = coco.annToMask(one).astype(bool)
                (original,) = np.unique(ids[mask])
                assert mask.sum() == one["area"] == (ids == original).sum()
                assert np.unique(label[mask]).tolist() == [one["category_id"] - 1]
                left, top, width, height = one["bbox"]
                assert mask[top : top + height, left : left + width].sum() == mask.sum()
                found[mask] = number
            assert np.array_equal(found > 0, ids > 0)


def test_coco_is_packed_to_the_same_objects_again(objects: Path, laid_out: dict[str, Path], tmp_path: Path) -> None:
    options = ("--annotations", "annotations/instances_{split}.json", "--image", "{split}/{key}.png")
    again = pack(laid_out["coco"], tmp_path / "again", *options, "--field", "instance=ids", "--labels", "index")
    for split in ("train", "val"):
        before, after = (rows(out, split, "image", "label", "instance") for out in (objects, again))
        for key, (image, label, ids) in before.items():
            assert np.array_equal(after[key][0], image)
            is_object = ids > 0
            assert np.array_equal(after[key][2] > 0, is_object)
            names = open_dataset(again, split).classes.names
            found = np.array([NAMED.index(name) if name in NAMED else -1 for name in names])[after[key][1][is_object]]
            assert np.array_equal(found, label[is_object])


def test_imagefolder_pairs_masks_in_its_metadata(objects: Path, laid_out: dict[str, Path]) -> None:
    folder = laid_out["imagefolder"]
    for split in ("train", "val"):
        stored = rows(objects, split, "image", "label")
        lines = [json.loads(line) for line in (folder / split / "metadata.jsonl").read_text().splitlines()]
        assert [line["key"] for line in lines] == list(stored)
        for line in lines:
            image, label = stored[line["key"]]
            assert np.array_equal(read(folder / split / line["file_name"]), np.moveaxis(image, 0, 2))
            assert np.array_equal(read(folder / split / line["label_file_name"]), label)
    assert json.loads((folder / "id2label.json").read_text())["3"] == "class_3"


def test_nnunet_has_its_names_and_the_ignored_number_last(objects: Path, laid_out: dict[str, Path]) -> None:
    folder = laid_out["nnunet"]
    facts = json.loads((folder / "dataset.json").read_text())
    assert facts["labels"] == {"background": 0, "class_1": 1, "class_2": 2, "class_3": 3, "ignore": 4}
    assert (facts["numTraining"], facts["file_ending"], len(facts["channel_names"])) == (6, ".png", 3)
    (fold,) = json.loads((folder / "splits_final.json").read_text())
    for split in ("train", "val"):
        stored = rows(objects, split, "image", "label")
        assert fold[split] == list(stored)
        for key, (image, label) in stored.items():
            assert np.array_equal(read(folder / "imagesTr" / f"{key}_0000.png"), np.moveaxis(image, 0, 2))
            assert np.array_equal(read(folder / "labelsTr" / f"{key}.png"), np.where(label == 255, 4, label))


def test_ultralytics_has_masks_and_outlines(objects: Path, laid_out: dict[str, Path]) -> None:
    folder = laid_out["ultralytics"]
    facts = yaml.safe_load((folder / "data.yaml").read_text())
    assert (facts["train"], facts["val"], facts["masks_dir"]) == ("images/train", "images/val", "masks")
    assert facts["names"] == dict(enumerate(NAMED))
    for split in ("train", "val"):
        for key, (image, label, ids) in rows(objects, split, "image", "label", "instance").items():
            assert np.array_equal(read(folder / facts[split] / f"{key}.png"), np.moveaxis(image, 0, 2))
            assert np.array_equal(read(folder / "masks" / split / f"{key}.png"), label)
            lines = (folder / "labels" / split / f"{key}.txt").read_text().splitlines()
            objects_of_row = np.unique(ids[ids > 0])
            assert len(lines) == len(objects_of_row)
            for line, one in zip(lines, objects_of_row, strict=True):
                name, *numbers = line.split()
                points = (np.array(numbers, float).reshape(-1, 2) * (56, 40)).astype(np.int32)
                drawn = np.zeros(ids.shape, np.uint8)
                cv2.fillPoly(drawn, [points], 1)
                outer, _ = cv2.findContours((ids == one).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
                whole = cv2.drawContours(np.zeros(ids.shape, np.uint8), outer, -1, 1, -1)
                assert np.unique(label[ids == one]).tolist() == [int(name)]
                assert (drawn >= whole).all()
                if len(outer) == 1:
                    assert np.array_equal(drawn, whole)


def test_two_splits_with_one_key_are_refused_where_they_share_a_folder(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--labels", "index")
    for layout in LAYOUTS:
        command = ("extract", "--all", "--layout", layout, "--quiet", out, tmp_path / layout)
        if layout in SHARED_KEYS:
            good(*command)
        else:
            assert "another split has this key" in errors_of(2, *command)
            assert not (tmp_path / layout).exists()
            good(*command[:-2], "--split", "val", *command[-2:])
    assert yaml.safe_load((tmp_path / "ultralytics" / "data.yaml").read_text())["names"] == dict(enumerate(NAMES))


def test_what_a_layout_cannot_hold_is_refused(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(
        raw_folder.path, tmp_path / "out", "--labels", "index", "--image-range", "0,255", "--image-dtype", "float32"
    )
    for layout in ("coco", "voc", "ultralytics", "imagefolder"):
        assert "has pictures of 8 bits" in errors_of(2, "extract", "--all", "--layout", layout, out, tmp_path / layout)
    assert "--layout writes all rows" in errors_of(2, "extract", "--layout", "voc", out, "key", tmp_path / "x")
    command = ("extract", "--all", "--layout", "voc", "--argmax", out, tmp_path / "x")
    assert "--layout writes all rows" in errors_of(2, *command)


def write_raw(raw: Path, classes: int, keys: Mapping[str, Sequence[str]]) -> None:
    """Write pictures, and labels of 16 bits in which every class may occur."""
    random = np.random.default_rng(0)
    for split, names in keys.items():
        for key in names:
            write_png(raw / split / "images" / f"{key}.png", random.integers(0, 255, (24, 36, 3), np.uint8))
            write_png(raw / split / "labels" / f"{key}.png", random.integers(0, classes, (24, 36)).astype(np.uint16))


@pytest.mark.parametrize("classes", [254, 255, 256, 300])
def test_a_layout_has_every_class_or_refuses(classes: int, tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", classes, {"train": ["a"]})
    out = pack(tmp_path / "raw", tmp_path / "out", "--labels", "index", "--classes", classes)
    ((expected,),) = rows(out, "train", "label").values()
    files = {
        "imagefolder": "train/labels/a.png",
        "nnunet": "labelsTr/a.png",
        "ultralytics": "masks/train/a.png",
        "voc": "SegmentationClass/a.png",
    }
    most = {"imagefolder": 300, "nnunet": 254, "ultralytics": 254, "voc": 255}
    for layout, file in files.items():
        arguments = ("extract", "--all", "--layout", layout, out, tmp_path / layout)
        if classes > most[layout]:
            assert f"more than {most[layout]} classes" in errors_of(2, *arguments)
        else:
            good(*arguments)
            assert np.array_equal(read(tmp_path / layout / file), expected)


def test_rows_of_the_split_test_are_not_offered_to_train_with(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", 4, {"train": ["a"], "val": ["b"], "test": ["c"]})
    out = pack(tmp_path / "raw", tmp_path / "out", "--labels", "index", "--classes", 4)
    good("extract", "--all", "--layout", "voc", out, tmp_path / "voc")
    lists = {path.stem: path.read_text().split() for path in (tmp_path / "voc/ImageSets/Segmentation").iterdir()}
    assert lists == {"train": ["a"], "val": ["b"], "trainval": ["a", "b"], "test": ["c"]}
    good("extract", "--all", "--layout", "nnunet", "--split", "test", out, tmp_path / "nnunet")
    assert json.loads((tmp_path / "nnunet/dataset.json").read_text())["numTraining"] == 0
    assert [path.name for path in (tmp_path / "nnunet/imagesTs").iterdir()] == ["c_0000.png"]


def test_nnunet_keeps_the_number_of_a_class_with_a_name_of_its_own(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", 4, {"train": ["a"]})
    (tmp_path / "names.txt").write_text("sky\nbackground\nignore\nroad\n")
    out = pack(tmp_path / "raw", tmp_path / "out", "--labels", "index", "--classes", tmp_path / "names.txt")
    good("extract", "--all", "--layout", "nnunet", out, tmp_path / "nnunet")
    labels = json.loads((tmp_path / "nnunet/dataset.json").read_text())["labels"]
    assert labels == {"background": 0, "background_1": 1, "ignore_2": 2, "road": 3, "ignore": 4}


def test_ultralytics_finds_the_labels_of_a_key_with_a_folder_images(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", 4, {"train": ["city/images/a", "city/b"]})
    templates = ("--image", "{split}/images/{key}.png", "--label", "{split}/labels/{key}.png")
    out = pack(tmp_path / "raw", tmp_path / "out", "--labels", "index", "--classes", 4, *templates)
    folder = tmp_path / "yolo"
    good("extract", "--all", "--layout", "ultralytics", out, folder)
    pictures = [path.as_posix() for path in sorted(folder.glob("images/**/*.png"))]
    assert len(pictures) == 2
    assert all(Path("/masks/".join(path.rsplit("/images/", 1))).is_file() for path in pictures)


def test_probe_reads_no_folder_that_is_named_like_settings(tmp_path: Path) -> None:
    write_raw(tmp_path / "raw", 4, {"train": ["a"]})
    (tmp_path / "raw" / "data.yaml").mkdir()
    assert "trainer" not in good("probe", tmp_path / "raw").stdout


@pytest.mark.parametrize("layout", ["imagefolder", "nnunet", "ultralytics", "voc"])
def test_probe_finds_the_classes_of_a_layout_and_what_it_proposes_packs_the_same_labels(
    layout: str, objects: Path, tmp_path: Path
) -> None:
    options = ("--labels", "index", "--classes", "4", "--ignore", "255")
    classes = pack(objects.parent / "raw", tmp_path / "classes", *options)
    folder, config = tmp_path / layout, tmp_path / "packer.toml"
    good("extract", "--all", "--layout", layout, "--quiet", classes, folder)
    good("probe", "--workers", "1", "--write", config, folder)
    (trainer,) = json.loads(good("probe", "--workers", "1", "--json", folder).stdout)["trainers"]
    assert trainer["name"] == READERS[layout]
    check_lines(trainer["lines"])
    text = config.read_text()
    config.write_text("".join(line for line in text.splitlines(True) if not line.startswith(("decide", "split"))))
    lists = ("--lists", "splits_{split:train|val}.txt") if layout == "nnunet" else ()
    for split in ("train", "val") if lists else ():
        (fold,) = json.loads((folder / "splits_final.json").read_text())
        (folder / f"splits_{split}.txt").write_text("".join(f"{key}\n" for key in fold[split]))
    again = pack(folder, tmp_path / "again", "--config", config, *lists)
    for split in ("train", "val"):
        before, after = (rows(out, split, "label") for out in (objects, again))
        assert all(np.array_equal(after[key][0], label) for key, (label,) in before.items())
        assert set(before) == set(after)
        first = ["background"] if layout == "nnunet" else NAMED[:1]
        assert list(open_dataset(again, split).classes.names) == [*first, *NAMED[1:]]


def test_probe_does_not_wait_for_a_pipe_named_like_settings(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw = shutil.copytree(raw_folder.path, tmp_path / "raw")
    os.mkfifo(raw / "data.yaml")
    assert json.loads(good("probe", "--workers", "1", "--json", raw).stdout)["trainers"] == []
