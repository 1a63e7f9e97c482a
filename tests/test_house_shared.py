"""Real public data, packed and read back: the class histograms equal those that another program counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import pack

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from readers import SegDataset, open_dataset

pytestmark = pytest.mark.shared


def expected(shared: Path, name: str) -> dict[int, int]:
    facts = json.loads((shared / "EXPECT.json").read_text())[name]
    return {int(value): count for value, count in facts["index_hist"].items()}


def histogram(dataset: SegDataset) -> dict[int, int]:
    """Count label pixels by source value. Ignored pixels are counted under the ignore index."""
    counts: dict[int, int] = {}
    for _, label in dataset:
        for index, count in zip(*np.unique(label.numpy(), return_counts=True), strict=True):
            ignored = index == dataset.classes.ignore_index
            value = int(index) if ignored else dataset.classes.classes[int(index)].values[0]
            counts[value] = counts.get(value, 0) + int(count)
    return counts


@pytest.mark.parametrize("storage", ["arrow", "hdf5", "lmdb", "npy"])
def test_camvid(shared_data: Path, tmp_path: Path, storage: str) -> None:
    raw = shared_data / "camvid_keras_example/test/example_dataset"
    templates = ("--image", "images_prepped_{split}/{key}.png", "--label", "annotations_prepped_{split}/{key}.png")
    out = pack(raw, tmp_path / "out", "--format", storage, *templates, "--classes", 12)
    for split, rows in (("train", 5), ("test", 3)):
        dataset = open_dataset(out, split=split, label="index")
        assert len(dataset) == rows
        assert histogram(dataset) == expected(shared_data, f"camvid_keras {split}")


def test_ade20k_with_zero_ignored(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "ade20k_sample/sampleData"
    options = ("--classes", "1-150", "--ignore", 0, "--labels", "index")
    wanted = expected(shared_data, "ade20k")
    out = pack(raw, tmp_path / "out", *options, "--size", "512x683", "--fit", "crop-or-pad")
    padding = 3 * 512 * 683 - sum(wanted.values())
    wanted[255] = wanted.pop(0) + padding
    assert histogram(open_dataset(out)) == wanted


def test_labelme_palette_labels_are_their_indices(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "labelme_voc/examples/semantic_segmentation/data_dataset_voc"
    options = ("--classes", 21, "--ignore", 255, "--labels", "index", "--size", "375x500", "--fit", "crop-or-pad")
    out = pack(raw, tmp_path / "out", *options)
    wanted = expected(shared_data, "labelme sem")
    wanted[255] += 3 * 375 * 500 - sum(wanted.values())
    assert histogram(open_dataset(out)) == wanted


@pytest.mark.parametrize("storage", ["arrow", "hdf5", "lmdb", "npy"])
def test_pictures_at_their_native_sizes(shared_data: Path, tmp_path: Path, storage: str) -> None:
    """Nothing is padded, so the counts are exactly those of the raw files."""
    ade = shared_data / "ade20k_sample/sampleData"
    out = pack(ade, tmp_path / "ade", "--classes", "1-150", "--ignore", 0, "--size", "native", "--format", storage)
    dataset = open_dataset(out, label="index")
    assert sorted(dataset.size(row) for row in range(3)) == [(300, 400), (364, 500), (512, 683)]
    wanted = expected(shared_data, "ade20k")
    wanted[255] = wanted.pop(0)
    assert histogram(dataset) == wanted
    labelme = shared_data / "labelme_voc/examples/semantic_segmentation/data_dataset_voc"
    out = pack(labelme, tmp_path / "voc", "--classes", 21, "--ignore", 255, "--size", "native", "--format", storage)
    assert histogram(open_dataset(out, label="index")) == expected(shared_data, "labelme sem")


def test_mmseg_pseudo_by_index_for_any_palette(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "mmseg_pseudo/tests/data/pseudo_dataset"
    out = pack(raw, tmp_path / "out", "--classes", 7, "--labels", "index")
    assert [len(open_dataset(out, split=split)) for split in ("train", "val")] == [4, 1]
    assert histogram(open_dataset(out, split="all")) == expected(shared_data, "mmseg_pseudo")


def test_unet_membrane_with_class_255(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "unet_membrane/data/membrane/train"
    (tmp_path / "binary.csv").write_text("value,name\n0,membrane\n255,cell\n")
    templates = ("--image", "image/{key}.png", "--label", "label/{key}.png")
    dataset = open_dataset(pack(raw, tmp_path / "out", *templates, "--classes", tmp_path / "binary.csv"), label="index")
    assert len(dataset) == 30
    assert histogram(dataset) == expected(shared_data, "unet_membrane")


@pytest.mark.parametrize("name", ["Landscape", "Portrait"])
def test_every_orientation_is_the_same_picture(shared_data: Path, name: str) -> None:
    paths = sorted((shared_data / "hard" / "exif_orientation").rglob(f"{name}_*"))
    decoded = [decode_image(path.read_bytes(), ImageRules()) for path in paths]
    pictures: list[Any] = [picture[::4, ::4].astype(int) for picture in decoded]
    assert len(pictures) == 9
    assert len({picture.shape for picture in decoded}) == 1
    for picture in pictures[1:]:
        # Each file was compressed again, so pixels differ a little. In any other orientation they differ far more.
        assert np.abs(picture - pictures[0]).mean() < np.abs(picture[::-1, ::-1] - pictures[0]).mean() / 5
