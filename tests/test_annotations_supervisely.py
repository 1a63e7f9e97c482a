"""Supervisely: every pixel as its SDK paints it, and no hostile file harms."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections import Counter
from random import Random
from typing import Any

import cv2
import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_json, painted_or_refused

from packer.annotations.cut_rings import MOST_POINTS, cut_rings
from packer.annotations.opencv_polygon import line
from packer.annotations.paint import Brush, Canvas
from packer.annotations.supervisely import knows, names_of, read
from packer.errors import BadPair
from readers.contract.tiles import Size

CASES = read_facts("supervisely")
SIZE = {"height": 6, "width": 8}
Points = list[tuple[int, int]]


def _canvas(*objects: dict[str, Any]) -> Canvas:
    picture = read(json.dumps({"size": SIZE, "objects": objects}).encode())
    return Canvas(picture, (6, 8), Brush({"car": 1, "sky": 2}))


def _cut(exterior: Points, *holes: Points, size: Size = (5, 8)) -> list[list[Any]] | None:
    """Return the sorted points of each part, and of its holes."""
    rings = [np.array(ring, np.int64) for ring in (exterior, *holes)]
    parts = cut_rings(rings[0], rings[1:], size)
    return (
        None
        if parts is None
        else [[sorted(set(map(tuple, ring.tolist()))) for ring in (part, *inner)] for part, inner in parts]
    )


def test_a_polygon_is_cut_into_its_parts_at_the_border() -> None:
    fork = [(-4, 0), (3, 0), (3, 1), (-2, 1), (-2, 3), (3, 3), (3, 4), (-4, 4)]
    assert _cut(fork) == [[[(0, 0), (0, 1), (3, 0), (3, 1)]], [[(0, 3), (0, 4), (3, 3), (3, 4)]]]
    assert _cut(fork[::-1]) == _cut(fork)
    assert _cut([(-3, 0), (0, 2), (-3, 4)]) == []  # it only touches the picture
    assert _cut([(5, 1), (20, 1), (20, 4)]) == [[[(5, 1), (7, 1), (7, 1)][:2]]]  # 1.4 is rounded, and a line is left


def test_a_hole_that_reaches_the_border_is_none() -> None:
    outside, hole = [(-9, -9), (20, -9), (20, 20), (-9, 20)], [(2, 1), (5, 1), (5, 3), (2, 3)]
    frame = [(0, 0), (0, 4), (7, 0), (7, 4)]
    assert _cut(outside, hole) == [[frame, sorted(hole)]]
    touching = [(0, 2), (3, 1), (3, 3)]
    assert _cut(outside, touching) == [[frame, sorted(touching)]]
    assert _cut(outside, [(-2, 1), (5, 1), (5, 3), (-2, 3)]) == [[sorted([*frame, (0, 1), (5, 1), (5, 3), (0, 3)])]]


@pytest.mark.parametrize(
    "rings",
    [
        [[(-1, 0), (5, 4), (5, 0), (-1, 4)]],  # crosses itself
        [[(-1, 0), (5, 0), (5, 4), (5, 2), (5, 4), (-1, 4)]],  # goes back on its way
        [[(-1, 0), (5, 0)]],
        [[(-1, 0), (5, 0), (5, 4)], [(6, 3), (7, 3), (7, 4)]],  # a hole elsewhere
        [[(-number, number * number) for number in range(MOST_POINTS + 1)]],
    ],
)
def test_what_is_not_clear_is_not_cut(rings: list[Points]) -> None:
    assert _cut(*rings) is None


def test_coordinates_far_away_are_cut_exactly() -> None:
    most = 10**9
    assert _cut([(-most, -most), (most, -most), (most, most), (-most, most)]) == [[[(0, 0), (0, 4), (7, 0), (7, 4)]]]


def _polygon(title: str, *interior: list[list[int]], **more: Any) -> dict[str, Any]:
    exterior = [[0.9, 0.9], [5, 0], [5, 4], [0, 4]]
    return {
        "classTitle": title,
        "geometryType": "polygon",
        "points": {"exterior": exterior, "interior": interior},
        **more,
    }


def _bitmap(data: bytes, origin: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    bitmap = {"data": b64encode(data).decode(), "origin": origin}
    return {"classTitle": "car", "geometryType": "bitmap", "bitmap": bitmap}


def _png(pixels: Any) -> bytes:
    return cv2.imencode(".png", np.asarray(pixels, np.uint8))[1].tobytes()


def test_figures_are_those_of_the_sdk() -> None:
    kinds = Counter[str]()
    for case in CASES:
        picture = read(json.dumps(case["document"]).encode())
        assert picture.size is not None
        height, width = picture.size
        label = Canvas(picture, picture.size, Brush({"car": 1})).label()
        bits = np.unpackbits(unpacked(case["mask"], (1, -(-height * width // 8)), "u1"), count=height * width)
        np.testing.assert_array_equal(label, bits.reshape(height, width), str(case["document"]))
        kinds[case["document"]["objects"][0]["geometryType"]] += 1
    assert kinds.total() >= 100
    assert min(kinds.values()) > 10
    assert len(kinds) == 5


def test_a_hole_is_cut_with_its_outline_and_shows_what_lies_below() -> None:
    hole = [[2, 2], [3, 2], [3, 3], [2, 3]]
    label = _canvas(_polygon("sky"), _polygon("car", hole)).label()
    assert label[1:5, 1:5].tolist() == [[1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1]]


def test_figures_of_an_instance_are_one_object() -> None:
    ids = _canvas(_polygon("car", instance="a"), _polygon("sky"), _polygon("car", instance="a")).ids()
    assert ids.max() == 1


def test_what_has_no_outline_is_counted() -> None:
    canvas = _canvas({"classTitle": "car", "geometryType": "point"}, {"classTitle": "car", "geometryType": "graph"})
    assert canvas.notes() == (
        "1 object of the kind 'point', which has no outline",
        "1 object of the kind 'graph', which has no outline",
    )


def test_a_bitmap_may_be_plain_grey_and_reach_out_of_the_picture() -> None:
    png = _png([[0, 255], [1, 0]])
    assert _canvas(_bitmap(png, (7, -1))).label()[0].tolist() == [0] * 7 + [1]
    assert _canvas(_bitmap(zlib.compress(png), (1, 2))).label()[2:4, 1:3].tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x" * 40, "is not a compressed PNG"),
        (zlib.compress(b"GIF89a"), "is not a PNG in a picture of 6x8"),
        (zlib.compress(_png(np.ones((9, 9)))), "of 9x9 pixels in a picture of 6x8"),
        (zlib.compress(bytes(1 << 20)), "cut off, or larger than its picture"),
        (zlib.compress(_png([[1]]))[:-9], "cut off"),
        (_png([[1]])[:-20], "damaged PNG"),
        (_png(np.ones((2, 2, 3))), "in colour"),
    ],
)
def test_a_bitmap_that_is_not_valid_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        _canvas(_bitmap(data))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classTitle": ""}, "object 1: has an object without a classTitle"),
        ({"points": None}, "without a list of points"),
        ({"points": {"exterior": [], "interior": []}}, "ring without points"),
        ({"points": {"exterior": [[1, 1]], "interior": 5}}, "interior that is not a list"),
        ({"geometryType": "rectangle"}, "rectangle of 4 corners"),
        ({"geometryType": "multipolygon"}, "no list of parts"),
        ({"geometryType": "bitmap"}, "not two numbers"),
    ],
)
def test_an_object_that_is_not_valid_is_refused_by_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadPair, match=words):
        _canvas({**_polygon("car"), **change})


def test_a_file_without_a_size_is_refused() -> None:
    with pytest.raises(BadPair, match="has no height and width"):
        read(b'{"objects": []}')


def test_its_files_are_known_by_their_keys() -> None:
    assert knows(json.dumps(CASES[0]["document"]).encode())
    assert knows(b'{"size": {"height": 1, "width": 1}, "objects": []}')
    for other in (b"", b"{}", b'{"size": 1, "objects": []}', b'{"size": {}, "objects": [{"label": "car"}]}', b"\xff"):
        assert not knows(other)


def test_the_classes_are_those_of_meta_json() -> None:
    assert names_of(b'{"classes": [{"title": "car"}, {"title": "sky"}], "tags": []}') == ("car", "sky")


def test_a_line_has_the_same_pixels_in_its_window() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        size = tuple(random.integers(1, 60, 2).tolist())
        points = random.integers(-30, 90, (random.integers(1, 6), 2))
        whole = np.zeros(size, np.uint8)
        cv2.polylines(whole, [points.astype(np.int32)], isClosed=False, color=1)
        mask, ours = line(size, points), np.zeros(size, np.uint8)
        ours[mask.top : mask.top + mask.inside.shape[0], mask.left : mask.left + mask.inside.shape[1]] = mask.inside
        np.testing.assert_array_equal(ours, whole)


def test_a_line_that_would_keep_opencv_busy_is_refused() -> None:
    with pytest.raises(BadPair, match="line of 300000 points that would take minutes"):
        line((9000, 9000), np.array([(0, 0), (8999, 8999)] * 150_000))


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(5)
    refused = sum(painted_or_refused(read, mutated_json(CASES[n % 9]["document"], random)) for n in range(300))
    assert 60 < refused < 290
