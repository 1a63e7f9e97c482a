"""LabelMe: every pixel as `labelme.utils.shapes_to_label` paints it, and no hostile file harms."""

from __future__ import annotations

import base64
import io
import json
from random import Random
from typing import Any

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_json, painted_or_refused
from PIL import Image, ImageDraw

from packer.annotations import pillow_picture
from packer.annotations.annotation import Shape
from packer.annotations.labelme import knows, read
from packer.annotations.paint import Brush, Canvas
from packer.annotations.pillow_shapes import FARTHEST, LINE_WIDTH, MOST_RADIUS, Circle, Line, Rectangle
from packer.errors import BadPair

CASES = read_facts("labelme")
BRUSH = Brush({"car": 1, "dog": 2, "sky": 3})
SQUARE = [[1, 1], [3, 1], [3, 3]]


def _file(*shapes: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"shapes": shapes, "imagePath": "a.png", "imageHeight": 5, "imageWidth": 6, **more}).encode()


def _shape(points: Any = SQUARE, **more: Any) -> dict[str, Any]:
    return {"label": "car", "points": points, **more}


@pytest.mark.parametrize("case", CASES)
def test_labels_and_objects_are_those_of_labelme(case: dict[str, Any]) -> None:
    picture = read(json.dumps(case["document"]).encode())
    assert picture.size is not None
    canvas = Canvas(picture, picture.size, BRUSH)
    np.testing.assert_array_equal(canvas.label(), unpacked(case["label"], picture.size, "u1"))
    pairs = np.unique(np.stack([canvas.ids(), unpacked(case["ids"], picture.size, "u2")]).reshape(2, -1), axis=1)
    assert all(len(np.unique(numbers)) == pairs.shape[1] for numbers in pairs)


def test_a_pillow_that_draws_on_a_copy_paints_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pillow_picture._shares_memory()
    monkeypatch.setattr(pillow_picture, "_shares_memory", lambda: False)
    monkeypatch.setattr(pillow_picture, "_on_array", None)
    for case in CASES[:3]:
        test_labels_and_objects_are_those_of_labelme(case)


def test_the_facts_have_all_kinds_of_shapes() -> None:
    shapes = [each for case in CASES for each in case["document"]["shapes"]]
    assert len(shapes) > 200
    kinds = {"polygon", "rectangle", "circle", "line", "linestrip", "point", "mask", "oriented_rectangle"}
    assert {each["shape_type"] for each in shapes} == kinds


def test_a_window_has_the_pixels_of_the_whole_picture() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        height, width, *counts = map(int, random.integers(2, 40, 4))
        first, *others = random.uniform(-20, 60, (sum(counts), 2)).tolist()
        whole, circle = Image.new("L", (width, height)), Circle.through(first, others[0])
        draw, ((x, y), radius) = ImageDraw.Draw(whole), (circle.centre, circle.radius)
        shape: Shape = Line([first, *others])
        sort = random.integers(3)
        if sort == 0:
            draw.line([tuple(each) for each in (first, *others)], fill=1, width=LINE_WIDTH)
        elif sort == 1:
            shape = circle
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=1, fill=1)
        else:
            shape, corners = Rectangle(first, others[0]), np.sort([first, others[0]], axis=0)
            draw.rectangle([tuple(each) for each in corners.tolist()], outline=1, fill=1)
        mask = shape.paint((height, width))
        ours = np.zeros((height, width), np.uint8)
        ours[mask.top : mask.top + mask.inside.shape[0], mask.left : mask.left + mask.inside.shape[1]] = mask.inside
        np.testing.assert_array_equal(ours, np.asarray(whole))


def test_what_is_not_painted_is_counted() -> None:
    shapes = [
        _shape(shape_type="tetrahedron"),
        _shape(SQUARE[:2]),
        _shape(SQUARE, shape_type="circle"),
        _shape(SQUARE[:2], shape_type="mask"),
        _shape(label="dog"),
    ]
    canvas = Canvas(read(_file(*shapes)), (5, 6), BRUSH)
    assert np.unique(canvas.label()).tolist() == [0, 2]
    assert canvas.notes() == (
        "1 object of the unknown kind 'tetrahedron'",
        "1 object of the kind polygon with 2 points",
        "1 object of the kind circle with 3 points",
        "1 object with a mask without pixels",
    )


def test_shapes_of_a_group_and_label_are_one_object() -> None:
    labels = [("car", 1), ("car-1", None), ("dog", 1), ("car", 1), ("car", None)]
    picture = read(_file(*(_shape(label=label, group_id=group) for label, group in labels)))
    found = [(each.category, each.instance) for each in picture.annotations]
    assert found == [("car", "1"), ("car-1", None), ("dog", "1"), ("car", "1"), ("car", None)]


def test_the_picture_within_a_file_and_a_missing_size_do_not_matter() -> None:
    assert len(read(_file(_shape(), imageData="!")).annotations) == 1
    assert read(_file(imageHeight=None, imageWidth=None)).size is None


def test_its_files_are_known_by_their_keys() -> None:
    assert knows(_file())
    for other in (b"", b"[]", b"{}", b'{"shapes": []}', b'["shapes", "imagePath"]', b'{"shapes": 1, "imagePath":'):
        assert not knows(other)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"shapes": {}}', "no list of objects"),
        (_file(_shape(label=3)), "without a label"),
        (_file(_shape([[1, 2, 3]])), "not two numbers"),
        (_file(_shape([[1, float("nan")]] * 3)), "not finite"),
        (_file(_shape(group_id=[])), "group_id"),
        (_file(_shape(), imageHeight="5"), "imageHeight and imageWidth"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        read(data)


def _png(width: int, height: int, mode: str = "L") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("points", "mask", "words"),
    [
        ([[1, 1], [3, 2]], b"no picture", "not a PNG|whose corners"),
        ([[1, 1], [3, 2]], _png(4, 2), "mask of 2x4, whose corners span 2x3"),
        ([[1, 1], [3, 2]], _png(3, 2)[:38], "damaged PNG"),
        ([[1, 1], [3, 2]], _png(3, 2, "RGB"), "in colour"),
        ([[4, 1], [6, 2]], _png(3, 2), r"from \(4, 1\) to \(6, 2\), which is not inside"),
        ([[-1, 1], [1, 2]], _png(3, 2), "not inside"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused_by_name(points: Any, mask: bytes, words: str) -> None:
    shape = _shape(points, shape_type="mask", mask=base64.b64encode(mask).decode())
    with pytest.raises(BadPair, match=words):
        Canvas(read(_file(shape)), (5, 6), BRUSH)


def test_shapes_far_away_take_no_time() -> None:
    for shape in (Circle((3, 3), MOST_RADIUS), Line([(0, 0), (FARTHEST, FARTHEST)]), Rectangle((2, 2), (9e5, 9e5))):
        assert shape.paint((5, 6)).inside.any()
        assert shape.paint((5, 6)).inside.size <= 30
    with pytest.raises(BadPair, match="pixels away"):
        Line([(0, 0), (2 * FARTHEST, 0)]).paint((5, 6))
    with pytest.raises(BadPair, match="radius of more than"):
        Circle((3, 3), MOST_RADIUS + 1).paint((5, 6))


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(5)
    refused = sum(painted_or_refused(read, mutated_json(CASES[n % 4]["document"], random)) for n in range(300))
    assert 60 < refused < 290
