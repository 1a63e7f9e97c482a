"""A file of COCO gives each picture its annotations, whatever their order; what belongs to none is counted."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drills.coco_files import GOOD, account, mutated

from packer.annotations.coco import read
from packer.annotations.list_pictures import index_of
from packer.annotations.paint import Brush, Canvas
from packer.annotations.picture_index import PictureIndex
from packer.errors import BadPair

SQUARE = [[1, 1, 4, 1, 4, 4, 1, 4]]
CATEGORIES = [{"id": 7, "name": "car"}, {"id": 3, "name": "Straße"}]


def image(number: int | str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "file_name": name, "height": 6, "width": 8, **more}


def outline(number: int, picture: int | str, category: int = 7, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": picture, "category_id": category, "segmentation": SQUARE, **more}


def listed(**lists: Any) -> tuple[PictureIndex, io.BytesIO]:
    file = io.BytesIO(json.dumps(lists, ensure_ascii=False).encode())
    return index_of(file), file


def test_annotations_come_to_their_pictures_in_the_order_of_the_file() -> None:
    pictures = [image(30, "b/ö.jpg"), image(5, "a.jpg"), image(9, "c.jpg")]
    objects = [outline(1, 5), outline(2, 30, 3), outline(3, 5, 3), outline(4, 77), outline(5, 5, 8)]
    for order in (("annotations", "images", "categories"), ("categories", "images", "annotations")):
        lists = {"annotations": objects, "images": pictures, "categories": CATEGORIES}
        index, file = listed(**{name: lists[name] for name in order})
        assert len(index) == 3
        found, digest = index.read(file, "a.jpg")
        assert [each.category for each in found.annotations] == ["car", "Straße"]
        assert found.lost == {"of a category that the file does not list": 1}
        assert (found.size, found.name, digest) == ((6, 8), "a.jpg", index.digest("a.jpg"))
        assert [each.category for each in index.read(file, "b/ö.jpg")[0].annotations] == ["Straße"]
        assert index.read(file, "c.jpg")[0].annotations == ()
        assert list(index.categories.items()) == [(3, "Straße"), (7, "car")]
        assert index.counts == {"Straße": 2, "car": 2}
        assert index.notes == (
            "1 annotations are of pictures that the file does not list",
            "1 annotations are of categories that the file does not list",
        )
        assert index.digest("d.jpg") is None
        assert index.size("a.jpg") == (6, 8)


def test_a_saved_index_is_the_same(tmp_path: Path) -> None:
    index, file = listed(images=[image(1, "a.jpg")], annotations=[outline(1, 1)], categories=CATEGORIES)
    index.save(tmp_path)
    mapped = PictureIndex.load(tmp_path)
    assert mapped.size("a.jpg") == (6, 8)
    assert mapped.read(file, "a.jpg")[1] == index.digest("a.jpg")
    assert (mapped.categories, mapped.counts, mapped.notes) == (index.categories, index.counts, index.notes)


def test_digests_show_what_changed() -> None:
    def digests(**changes: Any) -> list[bytes | None]:
        lists: dict[str, Any] = {
            "images": [image(1, "a.jpg"), image(2, "b.jpg")],
            "annotations": [outline(1, 1), outline(2, 2), outline(3, 1, 3)],
            "categories": CATEGORIES,
        }
        index = listed(**{**lists, **changes})[0]
        return [index.digest("a.jpg"), index.digest("b.jpg")]

    first, second = digests()
    assert digests(info={"year": 2017}) == [first, second]
    assert digests(annotations=[outline(2, 2), outline(1, 1), outline(3, 1, 3)]) == [first, second]
    changed = digests(annotations=[outline(3, 1, 3), outline(1, 1), outline(2, 2)])
    assert changed[0] != first
    assert changed[1] == second
    assert digests(images=[image(1, "a.jpg", width=9), image(2, "b.jpg")])[1] == second
    renamed = digests(categories=[{"id": 3, "name": "car"}, {"id": 7, "name": "Straße"}])
    assert renamed[0] != first


def test_a_file_that_changed_gives_no_wrong_annotations() -> None:
    index, file = listed(images=[image(1, "a.jpg")], annotations=[outline(1, 1)], categories=CATEGORIES)
    changed = io.BytesIO(file.getvalue().replace(b"[1, 1, 4", b"[1, 1, 5"))
    for other in (changed, io.BytesIO(file.getvalue()[:40]), io.BytesIO(b" " + file.getvalue())):
        with pytest.raises(BadPair, match="changed after its rows were listed"):
            index.read(other, "a.jpg")


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ({"images": [], "annotations": []}, "lists no images"),
        (
            {"images": [image(1, "a"), image(1, "b")]},
            "lists 1 images with the same id as another, such as that at byte 12",
        ),
        ({"images": [image(1, "a"), image(2, "a")]}, "with the same file_name"),
        ({"images": [{"id": 1}]}, "an image without a file_name, at byte 12"),
        ({"images": [image(1, "a") | {"id": None}]}, "an id that is neither a whole number nor a text: None"),
        ({"images": [3]}, "is not a table, at byte 12"),
        ({"images": [image(1, "a")], "annotations": [{"id": 1}]}, "an annotation without an image_id, at byte"),
        ({"images": [image(1, "a")], "categories": [{"id": 1}]}, "a category without a name"),
        ({"images": [image(1, "a")], "categories": CATEGORIES * 2}, "two categories with the id 7"),
    ],
)
def test_files_that_cannot_be_right_are_refused(lists: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPair, match=words):
        listed(**lists)


def test_what_has_no_outline_is_counted() -> None:
    without = [
        outline(1, 1, segmentation=None, bbox=[1, 2, 3, 4]),
        outline(2, 1, segmentation=[], bbox=[1, 2, 3, 4]),
        outline(3, 1, segmentation={}),
        outline(4, 1, segmentation=[[0, 0, 1, 0]]),
    ]
    index, file = listed(images=[image(1, "a")], annotations=without, categories=CATEGORIES)
    picture, _ = index.read(file, "a")
    assert picture.lost == {"with a box and no outline": 2, "without an outline": 1}
    notes = Canvas(picture, (6, 8), Brush({"car": 1})).notes()
    assert "1 object without a pixel" in notes


@pytest.mark.parametrize(
    ("segmentation", "words"),
    [
        ("text", "annotation 4 has a segmentation that is neither"),
        ([1, 2, 3, 4], "annotation 4 has an outline that is not a list"),
        ([[1, 2, 3]], "3 numbers"),
        ({"counts": [5], "size": [6, 8]}, "5 pixels in all, and 8x6 are 48"),
        ({"counts": "", "size": [6, 8]}, "other characters"),
        ({"size": [6, 8]}, "neither a list nor a text"),
    ],
)
def test_a_broken_annotation_is_named(segmentation: Any, words: str) -> None:
    index, file = listed(
        images=[image(1, "a")], annotations=[outline(4, 1, segmentation=segmentation)], categories=CATEGORIES
    )
    with pytest.raises(BadPair, match=words):
        index.read(file, "a")


def test_crowds_and_run_lengths_are_painted() -> None:
    runs = {"counts": [6, 12, 30], "size": [6, 8]}
    index, file = listed(
        images=[image("x1", "a")],
        annotations=[outline(1, "x1"), outline(2, "x1", 3, segmentation=runs, iscrowd=1)],
        categories=CATEGORIES,
    )
    picture, _ = index.read(file, "a")
    assert [each.is_crowd for each in picture.annotations] == [False, True]
    label = Canvas(picture, (6, 8), Brush({"car": 1, "Straße": 2})).label()
    expected = np.zeros((6, 8), np.uint8)
    expected[1:4, 1:4] = 1
    expected[:, 1:3] = 2
    np.testing.assert_array_equal(label, expected)


@pytest.mark.parametrize("first", range(4))
def test_no_annotation_of_a_damaged_file_is_lost_in_silence(first: int) -> None:
    found = Counter[str]()
    for number in range(first, 160, 4):
        found.update(account(mutated(number)))
    assert found["files refused"] > 2
    assert first == 0 or (found["annotations seen"] > 10 and found["pictures refused"] > 2)


def test_the_drill_finds_an_annotation_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert account(json.dumps(GOOD).encode())["annotations counted"] > 5
    monkeypatch.setattr(Canvas, "notes", lambda canvas: ())
    with pytest.raises(AssertionError, match=r"annotations, \d seen and 0 counted"):
        account(json.dumps(GOOD).encode())


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"file_name": "train\\a.jpg"}, "train/a.jpg"),
        ({"file_name": "./a.jpg"}, "a.jpg"),
        ({"file_name": "a\u0308.jpg"}, "ä.jpg"),
        ({"coco_url": "http://images.example.org/train2017/0391895.jpg"}, "train2017/0391895.jpg"),
    ],
)
def test_names_are_written_in_several_ways(facts: dict[str, str], name: str) -> None:
    index, _ = listed(images=[{"id": 1, **facts}], annotations=[])
    assert index.digest(name) is not None


def test_a_picture_needs_no_size() -> None:
    assert read(b'{"id": 1, "file_name": "a"}', [], {}).size is None
