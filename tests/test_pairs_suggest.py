"""If no layout fits, the suggested templates can be pasted and find the pairs that they promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ends_in_time, errors_of, good, write_png
from test_pairs_find import keys, touch

from packer.errors import InputError
from packer.pairs.files import list_files
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.suggest import Suggestion, suggest_templates
from readers import open_dataset


@pytest.mark.parametrize(
    ("files", "image", "label"),
    [
        (["photos/{0}.jpg", "truth/{0}.png"], "photos/{key}", "truth/{key}"),
        (["data/{0}.jpg", "data/{0}_mask.png"], "data/{key}.jpg", "data/{key}_mask.png"),
        (["{0}.png", "{0}_mask.png"], "{key}", "{key}_mask"),
        (["{0}.JPG", "{0}.PNG"], "{key}.jpg", "{key}.png"),
        (["aug/image_{0}_7.png", "aug/mask_{0}_7.png"], "aug/image_{key}", "aug/mask_{key}"),
        (["left/{0}img.png", "seg/{0}gt.png"], "left/{key}img", "seg/{key}gt"),
        (["my photos/{0} (rgb).jpg", "my truth/{0} (seg).png"], "my photos/{key} (rgb)", "my truth/{key} (seg)"),
        (
            ["im/{0}_im.png", "gt/{0}_gt_color.png", "gt/{0}_gt_ids.png", "gt/{0}_gt_instance.png"],
            "im/{key}_im",
            "gt/{key}_gt_ids",
        ),
        (["x_train/p/{0}.jpg", "y_train/p/{0}.png"], "x_{split}/p/{key}", "y_{split}/p/{key}"),
    ],
)
def test_templates_are_derived_from_the_names(files: list[str], image: str, label: str) -> None:
    names = [file.format(number) for file in files for number in ("1", "12", "305")]
    best = suggest_templates(names)[0]
    assert (best.image, best.label, best.pairs, best.unmatched) == (image, label, 3, 0)


def test_folders_around_the_pairs_become_splits_and_captures() -> None:
    files = [
        f"{split}/{area}/{kind}/{number}.png"
        for split in ("Train", "Val")
        for area in ("Rural", "Urban")
        for kind in ("images_png", "masks_png")
        for number in range(5)
    ]
    assert suggest_templates(files)[0] == Suggestion(
        "{split}/{folder2}/images_png/{key}", "{split}/{folder2}/masks_png/{key}", 20, 0
    )


def test_the_folder_that_differs_names_the_split() -> None:
    """All pairs went to the split of a folder around them, without a question."""
    files = [
        f"test/some/{kind}_{split}/{number}.png"
        for split in ("train", "val")
        for kind in ("image", "label")
        for number in range(3)
    ]
    assert suggest_templates(files)[0] == Suggestion(
        "test/some/image_{split}/{key}", "test/some/label_{split}/{key}", 6, 0
    )
    files = [
        f"test/{split}/{kind}/{number}.png"
        for split in ("train", "val")
        for kind in ("image", "label")
        for number in range(3)
    ]
    assert suggest_templates(files)[0] == Suggestion("test/{split}/image/{key}", "test/{split}/label/{key}", 6, 0)


def test_files_without_partner_are_counted() -> None:
    files = ["rgb/1.png", "rgb/2.png", "rgb/3.png", "gt/2.png", "gt/3.png", "gt/4.png"]
    assert suggest_templates(files) == [Suggestion("rgb/{key}", "gt/{key}", 2, 2)]


def test_a_depth_map_is_never_suggested_as_the_image(tmp_path: Path) -> None:
    touch(tmp_path, "aachen/0_dem.tif", "aachen/0_rgb.jxl", "aachen/0_seg.tif")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert "1 file with the suffix .jxl cannot be packed; convert it to PNG" in caught.value.problems
    assert suggest_templates(list_files(tmp_path)) == []


@pytest.mark.parametrize(
    "files",
    [[], ["a.png"], ["notes.txt", "a.csv"], [f"photos/IMG_{n}.jpg" for n in range(50)]],
)
def test_nothing_is_suggested_if_nothing_pairs(files: list[str]) -> None:
    assert suggest_templates(files) == []


def test_names_with_braces_and_stars_do_no_harm() -> None:
    assert suggest_templates(["x/{key}.png", "y/{key}.png", "x/*.png", "rgb/1.png", "gt/1.png"])[0].pairs == 1


def test_the_suggestion_in_the_error_can_be_pasted(tmp_path: Path) -> None:
    touch(tmp_path, "images/image_1.png", "images/image_2.png", "masks/gt_1.png", "masks/gt_2.png")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    summary = str(caught.value).splitlines()[0]
    assert "perhaps --image 'images/image_{key}' --label 'masks/gt_{key}'  (2 pairs, 0 without partner)" in summary
    assert len(keys(tmp_path, image="images/image_{key}", label="masks/gt_{key}")) == 2


def test_a_hundred_thousand_files_take_seconds() -> None:
    files = [
        f"{split}/video{video:03}/{kind}/{frame:04}.{suffix}"
        for split in ("train", "val")
        for video in range(250)
        for frame in range(100)
        for kind, suffix in (("frames", "jpg"), ("masks_2", "png"))
    ]
    with ends_in_time():  # a second on an idle core
        assert suggest_templates(files)[0].pairs == 50_000


DATUMARO, TORCHGEO = "datumaro_layouts/tests/assets", "torchgeo_layouts/tests/data"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("folder", "pairs", "templates"),
    [
        (f"{DATUMARO}/camvid_dataset", 4, None),
        (f"{DATUMARO}/common_semantic_segmentation_dataset/dataset", 2, None),
        ("mmseg_pseudo/tests/data/pseudo_dataset", 5, None),
        ("unet_membrane/data/membrane", 30, None),
        ("unet_membrane/data/membrane/train", 30, None),
        ("ade20k_sample/sampleData", 3, None),
        ("labelme_voc/examples/semantic_segmentation/data_dataset_voc", 3, None),
        ("labelme_voc/examples/instance_segmentation/data_dataset_voc", 3, None),
        ("labelme_voc/examples/video_annotation/data_dataset_voc", 5, None),
        (
            f"{DATUMARO}/common_semantic_segmentation_dataset/non_standard_dataset",
            2,
            ("images/image_{key}", "masks/gt_{key}"),
        ),
        (f"{DATUMARO}/ade20k2017_dataset/dataset", 2, ("{split}/{key}.jpg", "{split}/{key}_seg.png")),
        (f"{DATUMARO}/ade20k2020_dataset/dataset", 2, ("{split}/{key}.jpg", "{split}/{key}_seg.png")),
        (
            f"{DATUMARO}/cityscapes_dataset/train_dataset",
            4,
            ("leftImg8bit/{split}/{key}_leftImg8bit", "gtFine/{split}/{key}_gtFine_labelTrainIds"),
        ),
        (f"{DATUMARO}/kitti_dataset/kitti_segmentation", 2, ("{split}/image_2/{key}", "{split}/instance/{key}")),
        (f"{DATUMARO}/mapillary_vistas_dataset", 3, ("{split}/images/{key}", "{split}/v1.2/labels/{key}")),
        (f"{DATUMARO}/synthia_dataset/al", 2, ("RGB/{key}", "SemSeg/{key}")),
        (f"{DATUMARO}/synthia_dataset/rand", 2, ("RGB/{key}", "GT/{key}")),
        (f"{DATUMARO}/synthia_dataset/sf", 2, ("RGBLeft/{key}", "GTLeft/{key}")),
        (
            f"{TORCHGEO}/deepglobelandcover/data",
            6,
            ("{split}_data/images/{key}_sat", "{split}_data/masks/{key}_mask"),
        ),
        (f"{TORCHGEO}/loveda", 4, ("{split}/{folder2}/images_png/{key}", "{split}/{folder2}/masks_png/{key}")),
        (f"{TORCHGEO}/levircd/levircd", 6, ("A/{key}", "label/{key}")),
        (f"{TORCHGEO}/landcoverai", 2, ("output/{key}.jpg", "output/{key}_m.png")),
        ("unet_membrane/data/membrane/train/aug", 6, ("image_{key}", "mask_{key}")),
        (
            "camvid_keras_example/test/example_dataset",
            8,
            ("images_prepped_{split}/{key}", "annotations_prepped_{split}/{key}"),
        ),
        (f"{TORCHGEO}/vaihingen", 4, ("top/{key}", "{key}")),
        (f"{TORCHGEO}/inria", 7, ("AerialImageDataset/{split}/images/{key}", "AerialImageDataset/{split}/gt/{key}")),
        (f"{TORCHGEO}/potsdam", 4, ("4_Ortho_RGBIR/{key}_RGBIR", "{key}_label")),
        (f"{TORCHGEO}/gid15", 4, ("GID/img_dir/{split}/{key}", "GID/ann_dir/{split}/{key}_15label")),
        ("voc2012_original/misc", 1, ("{key}.jpg", "{key}.png")),
    ],
)
def test_public_layouts_pair_by_themselves_or_by_the_first_suggestion(
    shared_data: Path, folder: str, pairs: int, templates: tuple[str, str] | None
) -> None:
    raw = shared_data / folder
    if templates is None:
        assert len(find_pairs(raw).pairs) == pairs
        return
    with pytest.raises(InputError) as caught:
        find_pairs(raw)
    assert f"perhaps --image '{templates[0]}' --label '{templates[1]}'  ({pairs} pair" in str(caught.value)
    best = suggest_templates(list_files(raw))[0]
    assert (best.image, best.label) == templates
    assert len(find_pairs(raw, PairingRules(*templates, missing="skip")).pairs) == pairs


def test_pictures_of_nnunet_with_several_channels_are_named(tmp_path: Path) -> None:
    """A template for one of the channels was proposed, which trains on a fourth of each case."""
    for case in ("BRATS_001", "BRATS_002"):
        for channel in range(4):
            write_png(tmp_path / "imagesTr" / f"{case}_{channel:04}.png", np.zeros((4, 4), np.uint8))
        write_png(tmp_path / "labelsTr" / f"{case}.png", np.zeros((4, 4), np.uint8))
    for command in (("build", tmp_path, tmp_path / "out"), ("probe", tmp_path)):
        errors = errors_of(1, *command)
        assert (
            "has the form of nnU-Net with several channels, such as 4 of BRATS_001; --image 'imagesTr/{key}_{" in errors
        )
    options = ("--image", "imagesTr/{key}_{channel}", "--label", "labelsTr/{key}", "--classes", "2", "--quiet")
    good("build", *options, tmp_path, tmp_path / "out")
    assert open_dataset(tmp_path / "out").fields[0].bands == ("0000", "0001", "0002", "0003")
