"""Templates match as people expect: capitals, accents, stars, captures of one side, greedy names."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from test_pairs_find import keys, touch

from packer.errors import InputError, UsageError
from packer.pairs.find import find_pairs
from packer.pairs.template import Template

NFC, NFD = (unicodedata.normalize(form, "Zürich/é") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(("image", "label"), [(NFC, NFD), (NFD, NFC), (NFD, NFD)])
def test_accents_match_in_either_form(tmp_path: Path, image: str, label: str) -> None:
    touch(tmp_path, f"images/{image}.png", f"labels/{label}.png")
    wanted = [("all", NFC, f"images/{image}.png", f"labels/{label}.png")]
    assert keys(tmp_path) == wanted
    (tmp_path / "splits").mkdir()
    for listed in (NFC, NFD, f"images/{NFD}.png", f"images/{NFC}.png labels/{NFC}.png"):
        (tmp_path / "splits/train.txt").write_text(listed)
        assert [row[2:] for row in keys(tmp_path)] == [row[2:] for row in wanted]
    table = tmp_path / "pairs.csv"
    table.write_text(f"images/{NFC}.png,labels/{NFD}.png\n")
    assert keys(tmp_path, pairs=table) == [("all", f"images/{NFC}", *wanted[0][2:])]


def test_accents_in_a_template_match_in_either_form(tmp_path: Path) -> None:
    touch(tmp_path, f"{NFD}/a.png", f"{NFC} x/a.png")
    assert len(keys(tmp_path, image=f"{NFC}/{{key}}", label=f"{NFD} x/{{key}}.png")) == 1


def test_two_names_that_differ_only_in_the_form_of_accents_are_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, f"images/{NFC}.png", f"images/{NFD}.png", f"labels/{NFC}.png")
    with pytest.raises(InputError, match="2 images for the key"):
        find_pairs(tmp_path)


def test_capitals_in_suffixes_do_not_matter(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.PNG", "images/b.Jpg", "labels/a.png", "labels/b.PNG")
    assert [row[1] for row in keys(tmp_path)] == ["a", "b"]
    assert [row[1] for row in keys(tmp_path, image="images/{key}.png", label="labels/{key}.PNG", missing="skip")] == [
        "a"
    ]


def test_numbers_need_no_leading_zeros(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{kind}/{number}.png" for kind in ("images", "labels") for number in (1, 2, 10, 21)))
    assert [row[1] for row in keys(tmp_path)] == ["1", "10", "2", "21"]


@pytest.mark.parametrize(
    ("template", "path", "key"),
    [
        ("*_{key}.png", "x_a_b.png", "a_b"),
        ("{key}_*.png", "a_b_gt.png", "a_b"),
        ("*/{key}.png", "x/y/a.png", "y/a"),
        ("x/{key}", "x/a.b.JPEG", "a.b"),
        ("./x/{key}.jpg", "x/a.JPG", "a"),
        ("{key}.tif", "a.TIF", "a"),
        ("{key}.tif", "a.tif.png", None),
        ("x/{key}.png", "x/.png", None),
        ("x.y/{key}", "xzy/a.png", None),
        ("{city}/{key}", "a/b/c.png", "b/c"),
        ("{key}/{key}_image.png", "a/a_image.png", "a"),
        ("{key}/{key}_image.png", "a/b_image.png", None),
        ("{key}/{key}.png", "a/b/a/b.png", "a/b"),
        ("{city}/{city}_{key}.png", "bonn/bonn_01.png", "01"),
        ("{split:train|val}/{split}_{key}.png", "train/val_01.png", None),
    ],
)
def test_a_key_takes_as_much_as_it_can_and_a_star_as_little(template: str, path: str, key: str | None) -> None:
    found = Template(template).match(path)
    assert (found and found["key"]) == key


def test_images_and_masks_in_one_folder_by_prefix(tmp_path: Path) -> None:
    touch(tmp_path, "a/image_1.png", "a/mask_1.png", "a/image_1_mask.png", "a/mask_1_mask.png")
    assert [row[1] for row in keys(tmp_path, image="a/image_{key}.png", label="a/mask_{key}.png")] == ["1", "1_mask"]


def test_a_plain_name_next_to_a_prefixed_one(tmp_path: Path) -> None:
    touch(tmp_path, "1.png", "mask_1.png", "2.png", "mask_2.png")
    assert [row[1:3] for row in keys(tmp_path, image="{key}.png", label="mask_{key}.png")] == [
        ("1", "1.png"),
        ("2", "2.png"),
    ]


def test_a_file_that_fits_both_templates_equally_well_is_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, "a_b.png")
    with pytest.raises(InputError, match="fits --image and --label equally well"):
        find_pairs_by(tmp_path, "a_{key}", "{key}_b")


def find_pairs_by(root: Path, image: str, label: str) -> list[tuple[str, str, str, str]]:
    return keys(root, image=image, label=label)


@pytest.mark.parametrize(("image", "label"), [("i/{split}/{key}", "l/{key}"), ("i/{key}", "l/{split}/{key}")])
def test_only_one_of_both_paths_may_have_the_split(tmp_path: Path, image: str, label: str) -> None:
    for split, key in (("train", "a"), ("val", "b")):
        touch(tmp_path, f"{image.format(split=split, key=key)}.png", f"{label.format(split=split, key=key)}.png")
    assert [row[:2] for row in find_pairs_by(tmp_path, image, label)] == [("train", "a"), ("val", "b")]


def test_one_label_for_images_of_two_splits_is_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, "i/train/a.png", "i/val/a.png", "l/a.png")
    with pytest.raises(InputError, match="2 images for the key 'a'"):
        find_pairs_by(tmp_path, "i/{split}/{key}", "l/{key}")


def test_a_capture_that_only_images_have_is_not_part_of_the_key(tmp_path: Path) -> None:
    touch(tmp_path, "ann/1.png", "bob/2.png", "gt/1.png", "gt/2.png")
    assert [row[1:3] for row in find_pairs_by(tmp_path, "{who}/{key}", "gt/{key}")] == [
        ("1", "ann/1.png"),
        ("2", "bob/2.png"),
    ]


def test_a_capture_that_only_labels_have_is_wrong_usage_and_the_error_suggests_a_star(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"only the label has \{town\}; write \*"):
        find_pairs_by(tmp_path, "{key}", "{town}/{key}")
