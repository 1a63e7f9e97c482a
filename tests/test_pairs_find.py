"""Pairs are found by key in the usual layouts. Files without a partner are reported together."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from conftest import write_png

from packer.errors import InputError, TargetError, UsageError
from packer.pairs.find import find_pairs
from packer.pairs.further import FurtherFiles
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.template import Template
from packer.plan.sample import LabelSampler
from packer.probe.survey import survey_pairs
from packer.recipe.source import Heads
from packer.sources.files.folder import FolderSource
from packer.workers.in_process import InProcess
from readers.contract.manifest import MARK

GRAY = np.zeros((2, 2), np.uint8)


def touch(root: Path, *paths: str) -> Path:
    for path in paths:
        write_png(root / path, GRAY)
    return root


def keys(root: Path, **options: object) -> list[tuple[str, str, str, str]]:
    pairs = find_pairs(root, PairingRules(**options)).pairs  # type: ignore[arg-type]
    return [(pair.split, pair.key, pair.image, pair.label) for pair in pairs]


def heads_of(root: Path) -> list[Heads]:
    """Return the heads of all pairs."""
    source = FolderSource(root, find_pairs(root).pairs)
    return list(source.heads(list(source.rows())))


@pytest.mark.parametrize("images", ["images", "image", "imgs", "Images"])
@pytest.mark.parametrize("labels", ["labels", "masks", "annotations", "mask", "Labels"])
def test_images_next_to_labels(tmp_path: Path, images: str, labels: str) -> None:
    touch(tmp_path, f"{images}/b.jpg", f"{images}/a.PNG", f"{labels}/a.png", f"{labels}/b.png")
    assert keys(tmp_path) == [
        ("all", "a", f"{images}/a.PNG", f"{labels}/a.png"),
        ("all", "b", f"{images}/b.jpg", f"{labels}/b.png"),
    ]


def test_nested_folders_and_spaces_are_part_of_the_key(tmp_path: Path) -> None:
    touch(tmp_path, "images/my city/day 1/a.png", "labels/my city/day 1/a.png")
    assert [row[1] for row in keys(tmp_path)] == ["my city/day 1/a"]


@pytest.mark.parametrize(
    ("image", "label"),
    [
        ("{s}/images/x.png", "{s}/masks/x.png"),
        ("images/{s}/x.png", "annotations/{s}/x.png"),
        ("{s}/x.png", "{s}_labels/x.png"),
        ("{s}/x.png", "{s}annot/x.png"),
        ("{s}/x.jpg", "{s}_labels/x_L.png"),
        ("{s}/image/x_img.jpg", "{s}/gts/x_gt.png"),
    ],
)
def test_splits_come_from_folders(tmp_path: Path, image: str, label: str) -> None:
    for split in ("train", "val", "test"):
        touch(tmp_path, image.format(s=split), label.format(s=split))
    assert keys(tmp_path) == [
        (split, "x", image.format(s=split), label.format(s=split)) for split in ("test", "train", "val")
    ]


def test_voc_lists_decide_the_splits_and_unlisted_images_are_counted(tmp_path: Path) -> None:
    touch(tmp_path, *(f"JPEGImages/{name}.jpg" for name in "abcde"), *(f"SegmentationClass/{n}.png" for n in "abc"))
    lists = tmp_path / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("a\nb\n")
    (lists / "val.txt").write_text("c\r\n\r\n")
    (lists / "trainval.txt").write_text("a\nb\nc\n")
    pairing = find_pairs(tmp_path)
    assert [(pair.split, pair.key) for pair in pairing.pairs] == [("train", "a"), ("train", "b"), ("val", "c")]
    assert pairing.notes == ("left out, because in no list: 2 images",)
    (lists / "val.txt").write_text("c\nd\nz\n")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert caught.value.problems == (
        "ImageSets/Segmentation/val.txt:2: d has no label",
        "ImageSets/Segmentation/val.txt:3: z has neither image nor label",
    )


def test_voc_without_lists_is_one_split(tmp_path: Path) -> None:
    touch(tmp_path, "JPEGImages/a.jpg", "SegmentationClass/a.png", "SegmentationObject/a.png")
    assert keys(tmp_path) == [("all", "a", "JPEGImages/a.jpg", "SegmentationClass/a.png")]


def test_hidden_files_and_other_files_do_not_matter(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "images/.a.png", ".cache/images/b.png", "labels/._a.png")
    (tmp_path / "images" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "images" / ".DS_Store").write_bytes(b"x")
    assert len(keys(tmp_path)) == 1


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "images/a.jpg", "images/lonely.png", "images/ok.png", "images/scan.gif")
    touch(tmp_path, "labels/a.png", "labels/widow.png", "labels/ok.png")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert caught.value.problems == (
        "images/scan.gif: this file type cannot be packed; convert it to PNG",
        "images/a.jpg, images/a.png: 2 images for the key 'a'",
        "images/lonely.png: has no label",
        "labels/widow.png: has no image",
    )


def test_names_with_control_characters_or_bad_utf8_are_reported(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "images/two\nlines.png", "labels/two\nlines.png")
    broken = os.fsencode(tmp_path / "images") + b"/\xff\xfe.png"
    Path(os.fsdecode(broken)).write_bytes(b"x")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert len(caught.value.problems) == 3
    assert all("control characters or is not UTF-8" in problem for problem in caught.value.problems)
    str(caught.value).encode()


def test_missing_partners_can_be_skipped_and_are_still_listed(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "images/b.png", "labels/a.png", "labels/c.png")
    pairing = find_pairs(tmp_path, PairingRules(missing="skip"))
    assert [pair.key for pair in pairing.pairs] == ["a"]
    assert tuple(map(str, pairing.missing)) == ("images/b.png: has no label", "labels/c.png: has no image")


def test_two_label_folders_are_ambiguous_and_the_error_lists_the_options(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "masks/a.png")
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert "several layouts" in str(caught.value)
    assert "images/ + masks/: --image 'images/{key}' --label 'masks/{key}'" in caught.value.problems
    assert keys(tmp_path, image="images/{key}", label="masks/{key}") == [("all", "a", "images/a.png", "masks/a.png")]


def test_the_error_for_an_unknown_layout_lists_the_folders(tmp_path: Path) -> None:
    touch(tmp_path, "photos/a.png", "photos/b.png", "truth/a.png")
    with pytest.raises(InputError, match="--image") as caught:
        find_pairs(tmp_path)
    assert caught.value.problems == (
        "perhaps --image 'photos/{key}' --label 'truth/{key}'  (1 pair, 1 without partner)",
        "Found:",
        "photos/  2 files, such as a.png",
        "truth/  1 file, such as a.png",
    )


def test_an_empty_and_a_missing_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing"):
        find_pairs(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        find_pairs(tmp_path / "gone")


def test_templates_with_captures_and_stars(tmp_path: Path) -> None:
    touch(tmp_path, "aug/image_0_12.png", "aug/mask_0_12.png", "aug/image_1_7.png", "aug/mask_1_7.png")
    assert [row[1] for row in keys(tmp_path, image="aug/image_{key}.png", label="aug/mask_{key}.png")] == [
        "0_12",
        "1_7",
    ]
    city = tmp_path / "city"
    touch(city, "left/train/ulm/u_1_left.png", "gt/train/ulm/u_1_gt_ids.png", "gt/train/ulm/u_1_gt_color.png")
    assert keys(city, image="left/{split}/{city}/{key}_left.png", label="gt/{split}/{city}/{key}_gt_ids") == [
        ("train", "ulm/u_1", "left/train/ulm/u_1_left.png", "gt/train/ulm/u_1_gt_ids.png")
    ]
    assert keys(city, image="*/{split:train|val}/ulm/{key}_left", label="gt/{split}/*/{key}_gt_color")


def test_the_more_specific_template_wins(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "a_mask.png", "b.png", "b_mask.png")
    assert keys(tmp_path, image="{key}.png", label="{key}_mask.png") == [
        ("all", "a", "a.png", "a_mask.png"),
        ("all", "b", "b.png", "b_mask.png"),
    ]


@pytest.mark.parametrize("text", ["images/x.png", "{split}/x.png"])
def test_a_template_needs_a_key(text: str) -> None:
    with pytest.raises(UsageError, match="key"):
        Template(text)


def test_linked_folders_are_followed_and_loops_end(tmp_path: Path) -> None:
    touch(tmp_path / "store", "a.png")
    raw = tmp_path / "raw"
    touch(raw, "labels/a.png")
    (raw / "images").symlink_to(tmp_path / "store")
    (tmp_path / "store" / "loop").symlink_to(raw)
    assert [row[1] for row in keys(raw)] == ["a"]


def test_a_target_inside_the_raw_folder_is_skipped(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "out/images/a.png", "out/labels/b.png")
    assert len(find_pairs(tmp_path, leave_out=tmp_path / "out").pairs) == 1


def test_packed_data_sets_inside_the_raw_folder_are_passed_over_and_named_once(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "old/one/images/b.png", "images/packed/shards/b.png")
    for folder in ("", "old/one", "images/packed"):
        (tmp_path / folder / MARK).touch()
    found = find_pairs(tmp_path)
    assert [pair.key for pair in found.pairs] == ["a"]
    assert found.notes == ("passed over packed data sets: images/packed, old/one",)


@pytest.mark.parametrize(
    ("out", "templates"),
    [
        ("images/out", (None, None)),
        ("labels/train/out", (None, None)),
        ("out", ("{key}.jpg", "{key}_mask.png")),
        (".", ("{key}.jpg", "{key}_mask.png")),
        ("s/train/out", ("s/{split:train|val}/{key}_i*", "t/{split}/{key}")),
    ],
)
def test_a_target_where_pictures_are_looked_for_is_refused(
    tmp_path: Path, out: str, templates: tuple[str | None, str | None]
) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "x.jpg", "x_mask.png", "s/train/a_img.png", "t/train/a.png")
    (tmp_path / "link").symlink_to(tmp_path)
    for raw, target in ((tmp_path, tmp_path / out), (tmp_path / "link", tmp_path / out)):
        with pytest.raises(TargetError, match="name a folder outside"):
            find_pairs(raw, PairingRules(*templates), leave_out=target)


@pytest.mark.parametrize("out", ["out", "packs/train", "imagesx", "../out", "s/train_out"])
def test_a_target_inside_the_raw_folder_but_outside_of_the_layout_is_fine(tmp_path: Path, out: str) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png")
    assert len(find_pairs(tmp_path, leave_out=tmp_path / out).pairs) == 1


@pytest.mark.parametrize("suffix", [".*", ".p*", ".*g", "*"])
def test_a_star_may_stand_for_the_suffix(tmp_path: Path, suffix: str) -> None:
    touch(tmp_path, "i/a.png", "i/b.c.PNG", "l/a.png", "l/b.c.png")
    (tmp_path / "i/notes.pg").touch()
    rows = keys(tmp_path, image="i/{key}" + suffix, label="l/{key}.*")
    assert [row[1:] for row in rows] == [("a", "i/a.png", "l/a.png"), ("b.c", "i/b.c.PNG", "l/b.c.png")]


@pytest.mark.parametrize(
    "templates", [(None, None), ("images/{key}.*", "labels/{key}.png"), ("images/{key}.jpg", "labels/{key}*")]
)
def test_a_partner_that_cannot_be_packed_is_named(tmp_path: Path, templates: tuple[str | None, str | None]) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "images/c.jpg", "labels/b.png")
    for name in ("images/b.gif", "labels/c.GIF", "images/c.gif"):
        (tmp_path / name).touch()
    with pytest.raises(InputError) as refused:
        find_pairs(tmp_path, PairingRules(*templates))
    assert "labels/b.png: its image images/b.gif is of a file type that cannot be packed" in str(refused.value)
    assert "images/c.jpg: its label labels/c.GIF is of a file type that cannot be packed" in str(refused.value)


def test_links_that_lead_nowhere_stop_no_build(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "images/b.png")
    for name, target in (("images/self", "self"), ("labels/b.png", "b.png"), ("images/c", "a.png/x"), ("gone", "no")):
        (tmp_path / name).symlink_to(target)
    pairs = find_pairs(tmp_path).pairs
    assert [pair.key for pair in pairs] == ["a", "b"]
    assert heads_of(tmp_path)[1] == "labels/b.png: cannot be read (Too many levels of symbolic links)"


def test_a_trainval_list_with_names_of_its_own_is_a_split(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{folder}/{name}.png" for folder in ("JPEGImages", "SegmentationClass") for name in "abc"))
    lists = tmp_path / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "trainval.txt").write_text("a\nb\n")
    (lists / "test.txt").write_text("c\n")
    assert [row[:2] for row in keys(tmp_path)] == [("test", "c"), ("trainval", "a"), ("trainval", "b")]


def test_list_lines_may_have_spaces_or_a_flag(tmp_path: Path) -> None:
    touch(
        tmp_path, *(f"{folder}/{name}.png" for folder in ("JPEGImages", "SegmentationClass") for name in ("a", "a b"))
    )
    lists = tmp_path / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("a b\n")
    (lists / "val.txt").write_text("a -1\n")
    assert [row[:2] for row in keys(tmp_path)] == [("train", "a b"), ("val", "a")]
    (lists / "val.txt").write_bytes(b"\xff\xfe")
    (lists / "more").mkdir()
    with pytest.raises(InputError, match=r"val\.txt: the list cannot be read"):
        find_pairs(tmp_path)


@pytest.mark.parametrize("name", ["all", "train (1)"])
def test_a_split_with_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    touch(tmp_path, f"s/{name}/i/a.png", f"s/{name}/l/a.png", "s/x/i/a.png", "s/x/l/a.png")
    with pytest.raises(InputError, match="the split"):
        find_pairs(tmp_path, PairingRules("s/{split}/i/{key}", "s/{split}/l/{key}"))


def test_folders_that_are_links_to_each_other_both_count(tmp_path: Path) -> None:
    touch(tmp_path, "images/train/a.png", "labels/train/a.png")
    for kind in ("images", "labels"):
        (tmp_path / kind / "val").symlink_to("train")
    assert [row[:2] for row in keys(tmp_path)] == [("train", "a"), ("val", "a")]


@pytest.mark.parametrize(
    ("good", "stray"),
    [
        (("train/images/a.png", "train/labels/a.png"), "train/images/b.gif"),
        (("JPEGImages/a.jpg", "SegmentationClass/a.png"), "SegmentationClass/b.jxl"),
        (("train/a.jpg", "train_labels/a_L.png"), "train_labels/b.png"),
    ],
)
def test_pictures_inside_the_layout_that_do_not_fit_are_reported(
    tmp_path: Path, good: tuple[str, str], stray: str
) -> None:
    touch(tmp_path, *good, stray)
    with pytest.raises(InputError) as caught:
        find_pairs(tmp_path)
    assert any(stray in problem for problem in caught.value.problems)


def test_pictures_outside_of_the_layout_are_counted(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "predictions/a.png", "more/b.png")
    assert find_pairs(tmp_path).notes == ("2 other pictures fit neither images/{key} nor labels/{key}",)


def test_captures_pair_by_name_not_by_order(tmp_path: Path) -> None:
    touch(tmp_path, "im/1/2.png", "im/2/1.png", "gt/2/1.png", "gt/1/2.png")
    rows = keys(tmp_path, image="im/{city}/{key}.png", label="gt/{key}/{city}.png")
    assert rows == [("all", "1/2", "im/1/2.png", "gt/2/1.png"), ("all", "2/1", "im/2/1.png", "gt/1/2.png")]
    with pytest.raises(UsageError, match="the same captures"):
        keys(tmp_path, image="im/{city}/{key}.png", label="gt/{town}/{key}.png")


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png")
    os.mkfifo(tmp_path / "images" / "pipe.png")
    touch(tmp_path, "labels/pipe.png")
    assert heads_of(tmp_path)[-1] == "images/pipe.png: is not a regular file"


def test_build_and_probe_report_two_sizes_in_the_same_words(tmp_path: Path) -> None:
    write_png(tmp_path / "images" / "a.png", GRAY)
    write_png(tmp_path / "labels" / "a.png", np.zeros((2, 3), np.uint8))
    (of_build,) = heads_of(tmp_path)
    source = FolderSource(tmp_path, find_pairs(tmp_path).pairs)
    of_probe = list(survey_pairs(source, LabelSampler(source, InProcess(1, 60)), 1, near=False).bad.values())
    assert of_probe[0] == of_build
    assert of_probe[0].endswith("labels/a.png is 2x3 (height x width); they must have the same size")


def test_names_with_odd_spaces_are_fine(tmp_path: Path) -> None:
    touch(tmp_path, "images/a\u00a0b\u3000c.png", "labels/a\u00a0b\u3000c.png")
    assert len(keys(tmp_path)) == 1


@pytest.mark.parametrize("missing", ["skip", "keep"])
@pytest.mark.parametrize("image", ["images/{key}", "images/{key}.*"])
def test_a_picture_that_cannot_be_packed_is_left_out_by_name(tmp_path: Path, image: str, missing: str) -> None:
    """Without a label, such a picture was in no count and in no line."""
    touch(tmp_path, "images/a.png", "labels/a.png", "images/c.png")
    for name in ("a.gif", "b.gif", "b.jxl", "c.tga", "d.heic", "e.dcm", "g.nef", "notes.txt"):
        (tmp_path / "images" / name).touch()
    for name in ("c.gif", "f.gif"):
        (tmp_path / "labels" / name).touch()
    pairing = find_pairs(tmp_path, PairingRules(image, "labels/{key}", missing=missing))
    no_type = "this file type cannot be packed; convert it to"
    assert set(map(str, pairing.missing)) == {
        *(f"images/{name}: {no_type} PNG" for name in ("a.gif", "b.gif", "b.jxl", "c.tga", "d.heic")),
        "images/e.dcm: this file type cannot be packed; pack its folder as volumes with --from, or convert it to TIFF",
        f"images/g.nef: {no_type} TIFF",
        f"labels/f.gif: {no_type} PNG",
        "images/c.png: its label labels/c.gif is of a file type that cannot be packed; convert it to PNG",
    }
    assert not any("other pictures" in note for note in pairing.notes)
    with pytest.raises(InputError, match="--missing skip leaves out"):
        find_pairs(tmp_path, PairingRules(image, "labels/{key}"))
    assert find_pairs(tmp_path, PairingRules("images/{key}.png", "labels/{key}.png", missing="skip")).notes


@pytest.mark.parametrize("missing", ["skip", "keep"])
def test_a_picture_of_a_further_field_that_cannot_be_packed_is_named(tmp_path: Path, missing: str) -> None:
    touch(tmp_path, "images/a.png", "labels/a.png", "depth/a.png", "images/b.png", "labels/b.png")
    (tmp_path / "depth/b.exr").touch()
    rules = PairingRules("images/{key}", "labels/{key}", missing=missing, further=(FurtherFiles("z", "depth/{key}"),))
    pairing = find_pairs(tmp_path, rules)
    assert "depth/b.exr: this file type cannot be packed; convert it to TIFF" in map(str, pairing.missing)
    assert len(pairing.pairs) == (2 if missing == "keep" else 1)
