"""Split lists in many forms: each line is a pair or a problem, and no pair is in two splits."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_pairs_find import keys, touch

from packer.errors import InputError, UsageError
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Images and labels a to d, without splits."""
    return touch(tmp_path / "raw", *(f"images/{n}.jpg" for n in "abcd"), *(f"labels/{n}.png" for n in "abcd"))


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def splits(root: Path, **options: object) -> list[tuple[str, str]]:
    return [row[:2] for row in keys(root, **options)]


def problems(root: Path, **options: object) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        find_pairs(root, PairingRules(**options))  # type: ignore[arg-type]
    return caught.value.problems


def test_the_error_for_absent_lists_names_them(raw: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such list below .* or the current folder"):
        find_pairs(raw, PairingRules(lists="cuts/{split}.txt"))
    write(raw / "cuts/train.txt", "a")
    with pytest.raises(InputError, match="there is no list val below"):
        find_pairs(raw, PairingRules(lists="cuts/{split:train|val}.txt"))


@pytest.mark.parametrize("folder", ["splits", "lists", "ImageSets/Segmentation", ""])
def test_lists_in_the_usual_places_are_found(raw: Path, folder: str) -> None:
    write(raw / folder / "train.txt", "a", "b", "c")
    write(raw / folder / "val.txt", "d")
    assert splits(raw) == [("train", "a"), ("train", "b"), ("train", "c"), ("val", "d")]


def test_usual_lists_are_not_read_if_folders_are_the_splits(tmp_path: Path) -> None:
    touch(tmp_path, "train/a.png", "trainannot/a.png", "val/b.png", "valannot/b.png")
    write(tmp_path / "train.txt", "nothing")
    assert splits(tmp_path) == [("train", "a"), ("val", "b")]
    with pytest.raises(InputError, match=r"already has splits, .* give --image and --label without {split}"):
        find_pairs(tmp_path, PairingRules(lists="{split}.txt"))


def test_other_text_files_are_not_lists(raw: Path) -> None:
    write(raw / "readme.txt", "a")
    write(raw / "splits" / "notes.txt", "b")
    assert {split for split, _ in splits(raw)} == {"all"}


def test_lists_in_two_places_are_ambiguous_and_the_choice_can_be_pasted(raw: Path) -> None:
    write(raw / "splits/train.txt", "a")
    write(raw / "train.txt", "b")
    assert problems(raw) == ("--lists 'splits/{split:train}.txt'", "--lists '{split:train}.txt'")
    assert splits(raw, lists="splits/{split:train}.txt") == [("train", "a")]
    assert splits(raw, lists="{split:train}.txt") == [("train", "b")]


def test_given_templates_leave_lists_unused_with_a_note(raw: Path) -> None:
    write(raw / "splits/train.txt", "a")
    pairing = find_pairs(raw, PairingRules("images/{key}", "labels/{key}"))
    assert len(pairing.pairs) == 4
    assert pairing.notes == (
        "the lists splits/{split:train}.txt are not used; add --lists 'splits/{split:train}.txt' to use them",
    )


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a 1",
        "a -1 2 3",
        "a.jpg",
        "images/a.jpg",
        "./images/a.jpg",
        "images/a",
        "/home/someone/raw/images/a.jpg",
        "C:\\data\\images\\a.jpg",
        "labels/a.png",
        "images/a.jpg labels/a.png",
        "images/a.jpg\tlabels/a.png",
        "images/a.jpg,labels/a.png",
        "/Set/images/a.jpg /Set/labels/a.png",
    ],
)
def test_every_way_to_name_a_pair_is_understood(raw: Path, line: str) -> None:
    write(raw / "my lists/train.txt", line, "b")
    assert keys(raw, lists="my lists") == [
        ("train", "a", "images/a.jpg", "labels/a.png"),
        ("train", "b", "images/b.jpg", "labels/b.png"),
    ]


@pytest.mark.parametrize("name", [" lead", "trail ", "  both 1 ", "a b"])
def test_a_name_may_begin_and_end_with_spaces(tmp_path: Path, name: str) -> None:
    touch(tmp_path, *(f"{kind}/{each}.png" for kind in ("images", "masks") for each in ("a", name)))
    write(tmp_path / "train.txt", "  a ", name)
    assert splits(tmp_path) == [("train", key) for key in sorted(("a", name))]


def test_a_name_with_spaces_is_not_the_name_without_them(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{kind}/{each}.png" for kind in ("images", "masks") for each in ("a", " a")))
    write(tmp_path / "train.txt", " a")
    write(tmp_path / "val.txt", "a")
    assert sorted(splits(tmp_path)) == [("train", " a"), ("val", "a")]


@pytest.mark.parametrize("lists", ["cuts", "cuts/", "cuts/{split}.txt", "cuts/{split:train|val}.txt"])
def test_lists_can_be_a_folder_or_a_path_with_the_split(raw: Path, lists: str) -> None:
    write(raw / "cuts/train.txt", "a")
    write(raw / "cuts/val.txt", "b")
    assert splits(raw, lists=lists) == [("train", "a"), ("val", "b")]
    assert splits(raw, lists=str(raw / lists)) == [("train", "a"), ("val", "b")]


def test_a_split_may_be_a_folder_of_the_lists_path(raw: Path) -> None:
    write(raw / "cuts/one/files.txt", "a")
    write(raw / "cuts/two/files.txt", "b")
    assert splits(raw, lists="cuts/{split}/files.txt") == [("one", "a"), ("two", "b")]


@pytest.mark.parametrize("lists", ["nowhere", "cuts/{split}.lst", "cuts/{split:train|gone}.txt"])
def test_absent_lists_are_an_error(raw: Path, lists: str) -> None:
    write(raw / "cuts/train.txt", "a")
    with pytest.raises(InputError, match=r"--lists .*there is no"):
        find_pairs(raw, PairingRules(lists=lists))


@pytest.mark.parametrize("lists", ["{split}/{split}.txt", "*/{split}.txt", "{name}/{split}.txt"])
def test_a_path_of_lists_has_the_split_once(raw: Path, lists: str) -> None:
    with pytest.raises(UsageError, match="--lists"):
        find_pairs(raw, PairingRules(lists=lists))


def test_lists_of_two_paths_need_no_layout(tmp_path: Path) -> None:
    touch(tmp_path, "train/x.png", "train gt/x.png", "train/y.png", "train gt/y.png")
    write(tmp_path / "train.txt", "/SegNet/CamVid/train/x.png /SegNet/CamVid/train gt/x.png")
    write(tmp_path / "val.txt", "/SegNet/CamVid/train/y.png /SegNet/CamVid/train gt/y.png")
    assert "perhaps --lists '{split:train|val}.txt', if its lines name images and labels" in problems(tmp_path)
    assert keys(tmp_path, lists="{split}.txt") == [
        ("train", "train/x", "train/x.png", "train gt/x.png"),
        ("val", "train/y", "train/y.png", "train gt/y.png"),
    ]


def test_a_path_never_means_the_same_name_in_another_folder(tmp_path: Path) -> None:
    touch(tmp_path, "train/x.png")
    write(tmp_path / "train.txt", "/CamVid/train/x.png /CamVid/trainannot/x.png")
    assert problems(tmp_path, lists="{split}.txt") == ("train.txt:1: there is no file /CamVid/trainannot/x.png",)


def test_an_ambiguous_path_is_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, "one/im/x.png", "two/im/x.png", "gt/x.png")
    write(tmp_path / "train.txt", "/data/im/x.png gt/x.png")
    assert problems(tmp_path, lists="{split}.txt") == (
        "train.txt:1: /data/im/x.png may be any of one/im/x.png, two/im/x.png",
    )


def test_an_ambiguous_path_names_ten_files_at_most(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{number:02}/im/x.png" for number in range(13)), "gt/x.png")
    write(tmp_path / "train.txt", "/data/im/x.png gt/x.png")
    (problem,) = problems(tmp_path, lists="{split}.txt")
    assert problem.endswith("08/im/x.png, 09/im/x.png, … and 3 more")


def test_an_ambiguous_name_is_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{kind}/{city}/1.png" for kind in ("images", "labels") for city in ("bonn", "ulm")))
    write(tmp_path / "train.txt", "1.png", "bonn/1")
    assert problems(tmp_path) == ("train.txt:1: 1.png may be any of bonn/1, ulm/1",)


def test_all_lines_without_files_are_reported_together(raw: Path) -> None:
    (raw / "labels/b.png").unlink()
    (raw / "images/c.jpg").unlink()
    write(raw / "train.txt", "a", "b", "c", "z", "images/y.jpg", "images/d.jpg labels/y.png")
    assert problems(raw) == (
        "train.txt:2: b has no label",
        "train.txt:3: c has no image",
        "train.txt:4: z has neither image nor label",
        "train.txt:5: images/y.jpg has neither image nor label",
        "train.txt:6: there is no file labels/y.png",
    )
    pairing = find_pairs(raw, PairingRules(missing="skip"))
    assert [pair.key for pair in pairing.pairs] == ["a"]
    assert len(pairing.missing) == 5
    assert pairing.notes == ("left out, because in no list: 2 images",)


def test_a_pair_in_two_splits_is_a_leak_and_the_error_has_both_lines(raw: Path) -> None:
    write(raw / "splits/train.txt", "a", "b")
    write(raw / "splits/val.txt", "c", "images/b.jpg 1")
    assert problems(raw) == ("splits/val.txt:2: images/b.jpg is in val, and in train by splits/train.txt:2",)


@pytest.mark.parametrize(("name", "notes"), [("trainval", 0), ("everything", 1)])
def test_a_list_that_is_the_union_of_others_is_left_out(raw: Path, name: str, notes: int) -> None:
    write(raw / "lists/train.txt", "a", "b")
    write(raw / "lists/val.txt", "c")
    write(raw / f"lists/{name}.txt", "a", "b", "c")
    assert splits(raw, lists="lists") == [("train", "a"), ("train", "b"), ("val", "c")]
    found = find_pairs(raw, PairingRules(lists="lists")).notes
    assert found.count(f"the list {name} only repeats other lists and is left out") == notes


def test_a_test_list_that_is_the_union_of_others_leaks(raw: Path) -> None:
    write(raw / "lists/train.txt", "a", "b")
    write(raw / "lists/val.txt", "c")
    write(raw / "lists/test.txt", "a", "b", "c")
    assert len(problems(raw, lists="lists")) == 3


def test_lists_that_are_all_the_same_leak(raw: Path) -> None:
    for split in ("train", "val", "test"):
        write(raw / f"{split}.txt", "a")
    assert len(problems(raw)) == 2


def test_a_line_twice_in_a_list_is_one_pair(raw: Path) -> None:
    write(raw / "train.txt", "a", "b", "images/a.jpg")
    pairing = find_pairs(raw)
    assert [pair.key for pair in pairing.pairs] == ["a", "b"]
    assert "train.txt:3: repeats train.txt:1" in pairing.notes


def test_one_image_with_two_labels_is_named(raw: Path) -> None:
    write(raw / "train.txt", "images/a.jpg labels/a.png", "images/a.jpg labels/b.png")
    assert problems(raw, lists="{split}.txt") == ("train.txt:2: the key 'images/a' has another pair at train.txt:1",)


def test_names_of_an_affix_layout_are_found_with_and_without_it(tmp_path: Path) -> None:
    touch(tmp_path, *(f"imgs/{n}_img.jpg" for n in "012"), *(f"gts/{n}_gt.png" for n in "012"))
    write(tmp_path / "splits/train.txt", "0", "1_img")
    write(tmp_path / "splits/val.txt", "2_gt.png")
    assert splits(tmp_path) == [("train", "0"), ("train", "1"), ("val", "2")]


@pytest.mark.shared
def test_landcover_tiles_in_all_three_lists_leak(shared_data: Path) -> None:
    raw = shared_data / "torchgeo_layouts/tests/data/landcoverai"
    named = problems(raw, image="output/{key}.jpg", label="output/{key}_m.png", lists="{split:train|val|test}.txt")
    assert len(named) == 4
    assert all("and in train by train.txt" in problem for problem in named)


@pytest.mark.shared
def test_camvid_lists_of_absolute_paths(shared_data: Path) -> None:
    raw = shared_data / "datumaro_layouts/tests/assets/camvid_dataset"
    assert [row[::2] for row in keys(raw, lists="{split}.txt")] == [
        ("test", "test/0001TP_008550.png"),
        ("test", "test/0001TP_008580.png"),
        ("train", "train/0001TP_006690.png"),
        ("val", "val/0016E5_07959.png"),
    ]
