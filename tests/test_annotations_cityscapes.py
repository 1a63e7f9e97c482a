"""Cityscapes: every pixel as cityscapesScripts paints it, and no hostile file harms."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_json, painted_or_refused
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from packer.annotations.cityscapes import CATEGORIES, knows, read
from packer.annotations.paint import Brush, Canvas
from packer.annotations.pillow_polygon import PillowPolygon
from packer.errors import BadPair

CASES = read_facts("cityscapes")
BRUSH = Brush({category: number for number, category in enumerate(CATEGORIES)})


def _canvas(document: dict[str, Any]) -> Canvas:
    picture = read(json.dumps(document).encode())
    assert picture.size is not None
    return Canvas(picture, picture.size, BRUSH)


def _same_objects(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Check that each number of one picture is one number of the other."""
    pairs = np.unique(np.stack([ours.ravel(), theirs.ravel()]).astype(np.int64), axis=1)
    return all(len(np.unique(numbers)) == pairs.shape[1] for numbers in pairs)


@pytest.mark.parametrize("case", CASES)
def test_labels_and_objects_are_those_of_cityscapesscripts(case: dict[str, Any]) -> None:
    canvas, size = _canvas(case["document"]), (case["document"]["imgHeight"], case["document"]["imgWidth"])
    label = unpacked(case["label"], size, "u1")
    np.testing.assert_array_equal(canvas.label(), label)
    painted = label > 0  # an object called unlabeled has an id of ours
    assert _same_objects(canvas.ids()[painted], unpacked(case["ids"], size, "u2")[painted])


def test_the_facts_have_all_sorts_of_objects() -> None:
    objects = [each for case in CASES for each in case["document"]["objects"]]
    assert len(objects) > 200
    assert {"license plate", "cargroup", "polegroup", "out of roi"} <= {each["label"] for each in objects}
    assert any("deleted" in each for each in objects)


def test_what_is_not_painted_is_counted() -> None:
    square = [[1, 1], [3, 1], [3, 3]]
    labels = [("car", square, 1), ("license plate", square, 0), ("license plategroup", square, 0), ("car", [[1, 1]], 0)]
    objects = [{"label": label, "polygon": points, "deleted": deleted} for label, points, deleted in labels]
    canvas = _canvas({"imgHeight": 5, "imgWidth": 5, "objects": [*objects, {"label": "sky", "polygon": square}]})
    assert np.unique(canvas.label()).tolist() == [0, CATEGORIES.index("sky")]
    assert canvas.notes() == (
        "1 object marked as deleted",
        "2 objects of the category 'license plate', which Cityscapes does not paint",
        "1 object with fewer than 2 points",
    )


def test_a_group_is_a_crowd_of_its_category() -> None:
    objects = [{"label": label, "polygon": [[0, 0], [1, 1]]} for label in ("cargroup", "car", "polegroup", "tourgroup")]
    picture = read(json.dumps({"imgHeight": 5, "imgWidth": 5, "objects": objects}).encode())
    found = [(each.category, each.is_crowd, each.instance) for each in picture.annotations]
    assert found == [("car", True, ""), ("car", False, None), ("polegroup", False, ""), ("tourgroup", False, None)]


def test_a_window_has_the_pixels_of_the_whole_picture() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        height, width, count = map(int, random.integers(2, 40, 3))
        points = random.uniform(-20, 60, (count, 2))
        whole = Image.new("L", (width, height))
        ImageDraw.Draw(whole).polygon([tuple(point) for point in points.tolist()], fill=1)
        mask = PillowPolygon(points).paint((height, width))
        ours = np.zeros((height, width), np.uint8)
        ours[mask.top : mask.top + mask.inside.shape[0], mask.left : mask.left + mask.inside.shape[1]] = mask.inside
        np.testing.assert_array_equal(ours, np.asarray(whole))


def test_its_files_are_known_by_their_keys() -> None:
    assert knows(json.dumps(CASES[0]["document"]).encode())
    for other in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"objects": [], "imgHeight": 1}'):
        assert not knows(other)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"imgHeight": 4, "imgWidth": 4', "is not valid JSON"),
        (b'{"imgHeight": 4, "imgWidth": -4, "objects": []}', "imgHeight and imgWidth"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": {}}', "no list of objects"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": [{"polygon": []}]}', "without a label"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": [{"label": "car"}]}', "without a list of points"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": [{"label": "car", "polygon": [[1]]}]}', "not two numbers"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": [{"label": "car", "polygon": [[1, NaN]]}]}', "not finite"),
        (b'{"imgHeight": 4, "imgWidth": 4, "objects": [{"label": "car", "polygon": [[1, 1e99]]}]}', "pixels away"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        read(data)


def test_a_polygon_that_would_keep_pillow_busy_is_refused() -> None:
    zigzag = np.array([(index % 7, index % 2) for index in range(200_000)], np.float64)
    with pytest.raises(BadPair, match="200000 points that would take minutes"):
        PillowPolygon(zigzag).paint((9, 9))


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(5)
    refused = sum(painted_or_refused(read, mutated_json(CASES[n % 4]["document"], random)) for n in range(300))
    assert 60 < refused < 290
