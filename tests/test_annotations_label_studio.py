"""Label Studio: every pixel as its converter and its brush give it, and no hostile file harms."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from random import Random
from typing import Any

import cv2
import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_json, painted_or_refused

from packer.annotations.brush_code import BrushCode
from packer.annotations.label_studio import RotatedEllipse, is_task, picture_of, read
from packer.annotations.paint import Brush, Canvas
from packer.errors import BadPair

CASES = read_facts("label_studio")
SQUARE = [[10, 10], [60, 10], [60, 60], [10, 60]]


def _region(kind: str = "polygon", label: str = "car", **value: Any) -> dict[str, Any]:
    values = {"points": SQUARE, f"{kind}labels": [label], **value}
    return {"id": "a", "type": f"{kind}labels", "value": values, "original_width": 20, "original_height": 10}


def _task(*annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"id": 7, "data": data or {"image": "/data/upload/3/ab12-photo.jpg"}, "annotations": list(annotations)}


def _read(*results: dict[str, Any]) -> Any:
    return read(json.dumps(_task({"result": list(results)})).encode())


def test_regions_are_those_of_the_converter() -> None:
    kinds = Counter[str]()
    for case in CASES:
        height, width = case["size"]
        picture = read(json.dumps(case["task"]).encode())
        assert picture.size == (height, width)
        label = Canvas(picture, picture.size, Brush({"car": 1})).label()
        bits = np.unpackbits(unpacked(case["mask"], (1, -(-height * width // 8)), "u1"), count=height * width)
        np.testing.assert_array_equal(label, bits.reshape(height, width))
        kinds[case["task"]["annotations"][0]["result"][0]["type"]] += 1
    assert kinds["polygonlabels"] >= 100
    assert kinds["brushlabels"] >= 50


def test_an_ellipse_has_the_pixels_whose_centres_it_contains() -> None:
    circle = RotatedEllipse(5, 5, 3, 3, 0).paint((10, 20))
    assert (circle.top, circle.left) == (2, 2)
    assert circle.inside.sum(1).tolist() == [4, 6, 6, 6, 6, 4]
    turned = _read(_region("ellipse", x=50, y=50, radiusX=20, radiusY=10, rotation=90))
    label = Canvas(turned, (10, 20), Brush({"car": 1})).label()
    assert label.sum(0).tolist() == [0] * 9 + [6, 6] + [0] * 9
    assert not RotatedEllipse(90, 5, 3, 3, 45).paint((10, 20)).inside.size


def test_the_newest_annotation_counts_that_is_not_cancelled() -> None:
    old = {"created_at": "2024-01-01T00:00:00Z", "result": [_region(label="old"), {"type": "choices", "value": {}}]}
    new = {"created_at": "2024-03-01T00:00:00Z", "result": [_region(label="new")]}
    cancelled = {"created_at": "2024-05-01T00:00:00Z", "was_cancelled": True, "result": [_region(label="no")]}
    picture = read(json.dumps(_task(old, new, cancelled)).encode())
    assert [each.category for each in picture.annotations] == ["new"]
    assert picture.lost == {"of an earlier annotation of the same picture": 1}


def test_a_task_that_nobody_annotated_has_no_label() -> None:
    assert picture_of(_task()) is None
    assert picture_of(_task({"was_cancelled": True, "result": []})) is None
    assert picture_of(_task({"result": []})) == "ab12-photo.jpg"
    with pytest.raises(BadPair, match="no annotation that is not cancelled"):
        read(json.dumps(_task()).encode())
    assert not read(json.dumps(_task({"result": []})).encode()).annotations


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"image": "/data/local-files/?d=photos/a%20b.jpg"}, "photos/a b.jpg"),
        ({"id": 5, "photo": "s3://bucket/set/a.PNG"}, "set/a.PNG"),
        ({"text": "a car", "image": "https://host/x/a.webp?sign=1"}, "x/a.webp"),
    ],
)
def test_the_picture_is_that_of_the_data(data: dict[str, Any], name: str) -> None:
    assert picture_of({"data": data, "completions": [{"result": []}]}) == name


def _address(pixels: Any) -> str:
    ok, data = cv2.imencode(".png", pixels)
    assert ok
    return f"data:image/png;base64,{b64encode(data.tobytes()).decode()}"


def test_a_bitmask_has_the_pixels_that_are_not_transparent() -> None:
    pixels = np.zeros((10, 20, 4), np.uint8)
    pixels[2:5, 3:9, 3], pixels[9, 19, 3] = 255, 1
    label = {"id": "b", "type": "labels", "value": {"imageDataURL": _address(pixels), "labels": ["car"]}}
    for region in (_region("bitmask", imageDataURL=_address(pixels)), {**_region(), **label}):
        picture = _read(region)
        painted = Canvas(picture, (10, 20), Brush({"car": 1})).label()
        np.testing.assert_array_equal(painted, pixels[..., 3] > 0)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (_address(np.zeros((10, 21, 4), np.uint8)), "has a bitmap of 10x21 pixels in a picture of 10x20"),
        (_address(np.zeros((10, 19, 4), np.uint8)), "has a bitmask of 10x19, and the picture is 10x20"),
        (_address(np.ones((10, 20), np.uint8)), "has a bitmask without transparency"),
        (_address(np.ones((10, 20, 4), np.uint8))[:90], "a damaged PNG"),
        ("data:image/png;base64,???", "has a bitmask that is not a PNG in base64"),
        ("data:image/png;base64,AAAA", "has a bitmap that is not a PNG"),
        ("https://host/mask.png", "has a bitmask whose imageDataURL is not data:image/png;base64,"),
        (None, "has a bitmask whose imageDataURL is not data:image/png;base64,"),
    ],
)
def test_a_bitmask_that_is_not_one_is_refused(address: object, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        Canvas(_read(_region("bitmask", imageDataURL=address)), (10, 20), Brush({"car": 1}))


def test_what_has_no_outline_is_counted_and_answers_are_not_counted() -> None:
    label = {"type": "labels", "value": {"points": SQUARE, "labels": ["sky", "blue"]}}
    picture = _read(
        _region("rectangle", x=1, y=1, width=5, height=5),
        _region("keypoint", x=1, y=1),
        {**_region(), "id": "b", "type": "polygon", "value": {"points": SQUARE}},
        {**_region(), "id": "c", "type": "polygon", "value": {"points": SQUARE}},
        {**_region(), "id": "c", **label},
        {"type": "choices", "value": {"choices": ["blurred"]}},
        {"type": "relation", "from_id": "a", "to_id": "b"},
    )
    assert [each.category for each in picture.annotations] == ["sky", "blue"]
    assert picture.lost == {
        "with a box and no outline": 1,
        "of the kind 'keypoint', which has no outline": 1,
        "without a label": 1,
    }


@pytest.mark.parametrize("other", [{"to_name": "second"}, {"to_name": "first", "item_index": 1}])
def test_regions_of_several_pictures_are_not_painted_on_one(other: dict[str, Any]) -> None:
    first = {**_region(), "to_name": "first"}
    assert len(_read(first, {**first, "id": "b", "item_index": 0}).annotations) == 2
    with pytest.raises(BadPair, match="has regions of 2 pictures"):
        _read(first, {**first, **other, "id": "b"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"original_width": None}, "region 1: has no original_height and original_width"),
        ({"value": None}, "has no value"),
        ({"value": {"polygonlabels": ["car"]}}, "without a list of points"),
        ({"value": {"polygonlabels": [5], "points": SQUARE}}, "labels that are not texts"),
        ({"value": {"polygonlabels": ["car"], "points": [[1, 1e300]]}}, "pixels away"),
        ({"type": "brushlabels", "value": {"brushlabels": ["car"]}}, "without run lengths"),
        ({"type": "brushlabels", "value": {"brushlabels": ["car"], "rle": [1, 999]}}, "that are not bytes"),
        ({"type": "ellipselabels", "value": {"ellipselabels": ["car"], "x": 1}}, "not two numbers"),
    ],
)
def test_a_region_that_is_not_valid_is_refused_by_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPair, match=words):
        _read({**_region(), **change})


def test_regions_of_different_sizes_are_refused() -> None:
    with pytest.raises(BadPair, match="of different sizes"):
        _read(_region(), {**_region(), "original_width": 21})


def test_a_brush_is_checked_before_it_is_unpacked() -> None:
    size = (2, 2)
    head = f"{16:032b}{7:05b}" + "0000" * 4
    whole = head + "100" + "1" + "11111111" + "000" + "0" + "00000101" + "100" + "1" + "0" * 8

    def paint(bits: str, bytes_of: int = 0) -> Any:
        padded = bits + "0" * (-len(bits) % 8)
        return BrushCode(int(padded, 2).to_bytes(len(padded) // 8, "big")[: bytes_of or None], size).paint(size)

    for bits, words in (
        (head[:40], "cut off"),
        (whole, "cut off"),
        (f"{1 << 31:032b}" + whole[32:], "of 2147483648 values of 8 bits; expected 16 of 8"),
        (f"{16:032b}{15:05b}" + whole[37:], "16 values of 16 bits"),
        (f"{16:032b}{7:05b}" + "1111" * 4 + "100" + "1" * 16 + "1" * 8, "longer than its 16 values"),
    ):
        with pytest.raises(BadPair, match=words):
            paint(bits)
    with pytest.raises(BadPair, match="for 2x2, and the picture is 3x3"):
        BrushCode(b"", size).paint((3, 3))


def test_its_tasks_are_known_by_their_keys() -> None:
    assert is_task(CASES[0]["task"])
    others: list[Any] = [None, [], {}, {"data": {}}, {"data": [], "annotations": []}, {"annotations": [], "images": []}]
    for other in others:
        assert not is_task(other)


def test_mutated_tasks_are_painted_or_refused_by_name() -> None:
    random = Random(5)
    refused = sum(painted_or_refused(read, mutated_json(CASES[n % 9]["task"], random)) for n in range(300))
    assert 60 < refused < 299
