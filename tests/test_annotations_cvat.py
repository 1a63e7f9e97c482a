"""CVAT for images: every pixel as its export "Segmentation mask" paints it, and no hostile file harms."""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from pathlib import Path
from random import Random

import cv2
import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_bytes, painted_or_refused

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.cvat import CvatEllipse, read
from packer.annotations.list_pictures import index_of
from packer.annotations.paint import Brush, Canvas
from packer.annotations.picture_index import PictureIndex
from packer.errors import BadPair

CASES = read_facts("cvat")
BOX = '<box label="car" xtl="1" ytl="1" xbr="5" ybr="4" {}/>'


def _read(*shapes: str) -> AnnotatedPicture:
    return read(f'<image id="3" name="a/b.jpg" width="9" height="6">{"".join(shapes)}</image>'.encode())


def test_labels_are_those_of_the_export() -> None:
    kinds = Counter[str]()
    for case in CASES:
        picture = read(case["xml"].encode())
        assert picture.size == tuple(case["size"])
        label = Canvas(picture, picture.size, Brush({"car": 1, "sky": 2, "dog": 3})).label()
        np.testing.assert_array_equal(label, unpacked(case["label"], picture.size, "u1"), case["xml"])
        kinds.update(re.findall(r"<(box|ellipse|mask|polygon) ", case["xml"]))
    assert kinds.total() >= 100
    assert len(kinds) == 4
    assert min(kinds.values()) > 10


def test_the_higher_z_order_lies_on_top() -> None:
    label = Canvas(
        _read(BOX.format('z_order="2"'), BOX.replace("car", "sky").format("")), (6, 9), Brush({"car": 1, "sky": 2})
    )
    assert 2 not in label.label()
    assert label.notes() == ("1 object hidden by others",)


def test_shapes_of_one_label_and_group_are_one_object() -> None:
    shapes = (BOX.format('group_id="4"'), BOX.replace("car", "sky").format('group_id="4"'), BOX.format(""))
    assert [(each.category, each.instance) for each in _read(*shapes).annotations] == [
        ("car", None),
        ("car", "4"),
        ("sky", "4"),
    ]


def test_what_the_export_does_not_paint_is_counted() -> None:
    skeleton = '<skeleton label="man"><points label="hand" points="1,1"/></skeleton>'
    picture = _read(
        '<polyline label="x" points="1,1;2,2"/>', '<points label="x" points="1,1"/>', skeleton, '<tag label="t"/>'
    )
    assert picture == AnnotatedPicture(
        (),
        (6, 9),
        "a/b.jpg",
        {
            f"of the kind {kind!r}, which the export of CVAT does not paint": 1
            for kind in ("polyline", "points", "skeleton")
        },
    )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("<box/>", "shape 1: has a <box> without a label"),
        ('<box label="x"/>', "has xtl='', which is not a finite number"),
        (BOX.format('rotation="nan"'), "rotation='nan', which is not a finite number"),
        (BOX.format('z_order="1.5"'), "z_order='1.5', which is not a whole number"),
        ('<polygon label="x" points="1,2;3"/>', "has points '1,2;3'"),
        ('<polygon label="x" points="1,2;3,1e30;4,4"/>', "coordinate beyond"),
        ('<polygon label="x" points="1,2;3,nan;4,4"/>', "or that is not a number"),
        ('<ellipse label="x" cx="1" cy="1" rx="-3" ry="1"/>', "negative radius"),
        ('<mask label="x" rle="1, 2" left="0" top="0" width="2" height="2"/>', "of 3 pixels, and a mask of 2x2"),
        ('<mask label="x" rle="-1, 5" left="0" top="0" width="2" height="2"/>', "and a mask of 2x2"),
        ('<mask label="x" rle="1, x" left="0" top="0" width="2" height="2"/>', "not whole numbers"),
        ('<mask label="x" rle="99999999999999999999" left="0" top="0" width="2" height="2"/>', "not whole numbers"),
    ],
)
def test_a_shape_that_is_not_valid_is_refused_by_name(shape: str, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        _read(shape)


def test_a_mask_that_reaches_out_of_the_picture_is_refused() -> None:
    picture = _read('<mask label="x" rle="0, 4" left="8" top="0" width="2" height="2"/>')
    with pytest.raises(BadPair, match="not inside the picture"):
        picture.annotations[0].shapes[0].paint((6, 9))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not valid XML"),
        (b"<annotations/>", "not an <image>"),
        (b'<image name="a" width="0" height="5"/>', "not positive"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><image name="&a;"/>', "document type"),
    ],
)
def test_a_picture_that_is_not_valid_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        read(data)


def test_an_ellipse_has_the_same_pixels_in_its_window() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        size = tuple(random.integers(1, 50, 2).tolist())
        x, y, across, down = random.integers(0, 60, 4).tolist()
        whole, ours = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        degrees = float(random.uniform(0, 360))
        cv2.ellipse(whole, (x - 5, y - 5), (across, down), degrees, 0, 360, 1, thickness=-1)
        mask = CvatEllipse(x - 5, y - 5, across, down, degrees).paint(size)
        ours[mask.top : mask.top + mask.inside.shape[0], mask.left : mask.left + mask.inside.shape[1]] = mask.inside
        np.testing.assert_array_equal(ours, whole)


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(5)
    refused = sum(painted_or_refused(read, mutated_bytes(CASES[n % 9]["xml"].encode(), random)) for n in range(300))
    assert 60 < refused < 300


def _file(*images: str) -> bytes:
    return f"<annotations><version>1.1</version>{''.join(images)}</annotations>".encode()


def test_each_picture_is_read_from_its_bytes_alone() -> None:
    empty = '<image name="\u00e9.jpg" width="3" height="2"/>'
    file = BytesIO(_file(empty, CASES[0]["xml"].replace("\n", " "), "<!-- <image> --><meta><image/></meta>"))
    index = index_of(file)
    assert (len(index), index.format, index.size("\u00e9.jpg")) == (2, "cvat", (2, 3))
    assert index.read(file, "\u00e9.jpg")[0] == AnnotatedPicture((), (2, 3), "\u00e9.jpg")
    assert len(index.read(file, "a/b.jpg")[0].annotations) == sum(index.counts.values()) == 6
    assert index.name(file, index.others(["a/b.jpg"])[0]) == "\u00e9.jpg"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<annotations>", "not valid XML"),
        (b"<svg/>", "XML of <svg>"),
        (_file(), "lists no annotated pictures of cvat"),
        (_file("<track/>"), "CVAT for video"),
        (b'<?xml version="1.0" encoding="utf-16"?><annotations/>', "expected UTF-8|not valid XML"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><annotations/>', "document type"),
        (_file('<image name="a" width="1" height="1"><box/></image>'), "without a label, at byte 35"),
        (_file(*['<image name="a" width="1" height="1"/>'] * 2), "the same file_name"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        index_of(BytesIO(data))


def test_mutated_files_of_many_pictures_are_read_or_refused_by_name() -> None:
    random, refused = Random(7), 0
    whole = _file(*(case["xml"].replace("a/b", f"a/{n}") for n, case in enumerate(CASES[:4])))
    for _ in range(200):
        try:
            index_of(BytesIO(mutated_bytes(whole, random)))
        except BadPair as error:
            refused += bool(str(error))
    assert refused > 60


def test_another_label_in_one_picture_changes_no_other(tmp_path: Path) -> None:
    """Items have the names of their labels, so a new label built the shards of all pictures again."""
    one, two = (f'<image name="{name}" width="9" height="6">{BOX.format("")}</image>' for name in "ab")
    before, after = (index_of(BytesIO(_file(one, each))) for each in (two, two.replace("car", "bus")))
    assert (before.digest("a") == after.digest("a"), before.digest("b") == after.digest("b")) == (True, False)
    after.save(tmp_path)
    assert PictureIndex.load(tmp_path).digest("a") == before.digest("a")


def test_a_tag_that_does_not_end_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of XML keeps a tag until it ends: one of 4 GiB took twice as much memory."""
    monkeypatch.setattr("packer.annotations.whole_pictures.CHUNK", 100)
    whole = _file(*(case["xml"].replace("a/b", f"a/{n}") for n, case in enumerate(CASES[:4])))
    before = index_of(BytesIO(whole)).digests
    monkeypatch.setattr("packer.annotations.whole_pictures.MOST_BYTES", 2000)
    np.testing.assert_array_equal(index_of(BytesIO(whole)).digests, before)
    file = BytesIO(whole.replace(b"<image ", b"<image more='" + b"x" * 90_000 + b"' ", 1))
    with pytest.raises(BadPair, match=r"has a tag of more than 0 MiB, after byte \d+"):
        index_of(file)
    assert file.tell() < 4000
