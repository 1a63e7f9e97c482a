"""YOLO: every pixel as Ultralytics paints it, lists of names in all forms, and no hostile file harms."""

from __future__ import annotations

from random import Random
from typing import Any

import cv2
import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from mutated_annotations import mutated_bytes, painted_or_refused

from packer.annotations import yolo
from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.opencv_polygon import fill
from packer.annotations.paint import Brush, Canvas
from packer.errors import BadPair

CASES = read_facts("yolo")
NAMES = ("road", "sky", "car")
TRIANGLE = "0.1 0.1 0.9 0.1 0.5 0.8"


def _read(text: str, names: tuple[str, ...] = NAMES) -> AnnotatedPicture:
    return yolo.read(text.encode(), names)


def _bits(case: dict[str, Any]) -> Any:
    height, width = case["size"]
    packed = unpacked(case["mask"], (1, -(-height * width // 8)), "u1")
    return np.unpackbits(packed, count=height * width).reshape(height, width)


def test_outlines_are_those_of_ultralytics() -> None:
    for case in CASES:
        picture = _read(case["line"])
        assert [each.category for each in picture.annotations] == [NAMES[int(case["line"][0])]]
        label = Canvas(picture, tuple(case["size"]), Brush(dict.fromkeys(NAMES, 1))).label()
        np.testing.assert_array_equal(label, _bits(case), case["line"])
    assert len(CASES) >= 100


def test_a_hole_behind_a_bridge_is_a_hole() -> None:
    ring = "0 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9 0.1 0.1 0.3 0.3 0.3 0.7 0.7 0.7 0.7 0.3 0.3 0.3"
    label = Canvas(_read(ring), (100, 100), Brush({"road": 1})).label()
    assert (label[20, 50], label[50, 50], label[20, 20]) == (1, 0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "nc: 3\nnames: ['road', 'sky', 'car']\n",
        "path: ../x  # a comment\nnames:\n  0: road\n  1: sky\n  2: car\n",
        "names:\n- road\n- sky\n- car\ntrain: images/train\n",
        "names: {2: car, 0: road, 1: sky}",
        "road\nsky\ncar\n",
        "\ufeffnames: [\n  road,\n  sky, car]\nroboflow:\n  version: 3\n",
    ],
)
def test_names_are_read_in_all_forms(text: str) -> None:
    assert yolo.FORMAT.names_of(text.encode()) == NAMES


def test_names_that_are_words_of_yaml_stay_as_they_are() -> None:
    assert yolo.FORMAT.names_of(b"names: [no, 0, null, 1.50]") == ("no", "0", "null", "1.50")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nc: 3",
        b"names: road",
        b"names: [[road]]",
        b"names: [a, a]",
        b"names: {0: a, 2: b}",
        b"names: {a: b}",
        b"\xff\xfe",
        b"[" * 1_000,
        b"names: [" + b"a, " * 100_000 + b"]",
        b"a: &a [x, x]\nb: &b [*a, *a]\nnames: [*b, *b]",
    ],
)
def test_lists_that_are_not_valid_are_refused(data: bytes) -> None:
    with pytest.raises(BadPair):
        yolo.FORMAT.names_of(data)


def test_boxes_are_counted_or_refused_if_nothing_else_is_there() -> None:
    picture = _read(f"0 0.5 0.5 0.1 0.1\n2 {TRIANGLE}\n1 0.5 0.5 0.1 0.1\n")
    assert picture.lost == {"with a box and no outline": 2}
    with pytest.raises(BadPair, match="has 1 box and no outline"):
        _read("0 0.5 0.5 0.1 0.1")


def test_a_file_without_lines_has_no_object() -> None:
    assert _read("\ufeff \n\n") == AnnotatedPicture(())
    assert not yolo.knows(b"")


def test_without_names_classes_are_numbered() -> None:
    assert _read(f"7 {TRIANGLE}", ()).annotations[0].category == "class_7"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"3 {TRIANGLE}", "object 2: has the class 3, and the list has 3 names, 0 to 2"),
        (f"-1 {TRIANGLE}", "class -1; expected a whole number"),
        (f"0.5 {TRIANGLE}", "class 0.5; expected a whole number"),
        (f"road {TRIANGLE}", "expected a class and coordinates, found 'road"),
        ("0 0.1 0.1 0.9 0.1 0.5 1.2", "outside of 0 to 1"),
        ("0 -40 0.1 0.9 0.1 0.5 0.5", "outside of 0 to 1"),
        ("0 0.1 0.1 0.9 nan 0.5 0.5", "not finite"),
        ("0 0.1 0.1 0.9 1e999 0.5 0.5", "not finite"),
        (f"0 {TRIANGLE} 0.5", "has 8 numbers"),
        ("0 0.1 0.1", "has 3 numbers"),
        ("0" + " 0" * 2_000_002, "more than 1000000 points"),
    ],
)
def test_a_line_that_is_not_valid_is_refused_by_name(line: str, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        _read(f"1 {TRIANGLE}\n{line}\n")
    assert not yolo.knows(line.encode()) or "and the list has" in words


def test_its_files_are_known_by_their_numbers() -> None:
    assert yolo.knows(f"0 {TRIANGLE}\n12 {TRIANGLE}\n".encode())
    for other in (b"", b"train_1\ntrain_2\n", b"0 1 2 3 4 5 6", b'{"shapes": []}', b"\xff", b"1\n2\n"):
        assert not yolo.knows(other)


def test_a_window_has_the_pixels_of_the_whole_picture() -> None:
    random = np.random.default_rng(0)
    for _ in range(400):
        size = tuple(random.integers(1, 60, 2).tolist())
        far = random.choice([5, 40, 100_000])
        ring, *holes = (
            random.integers(-far, far + 60, (random.integers(1, 9), 2)) for _ in range(random.integers(1, 4))
        )
        whole = np.zeros(size, np.uint8)
        cv2.fillPoly(whole, [ring.astype(np.int32)], 1)
        if holes:
            cv2.fillPoly(whole, [hole.astype(np.int32) for hole in holes], 0)
        mask, ours = fill(size, ring, holes), np.zeros(size, np.uint8)
        ours[mask.top : mask.top + mask.inside.shape[0], mask.left : mask.left + mask.inside.shape[1]] = mask.inside
        np.testing.assert_array_equal(ours, whole)


def test_polygons_that_would_keep_opencv_busy_are_refused() -> None:
    zigzag = np.array([(index % 1000, index % 2 * 999) for index in range(40_000)])
    with pytest.raises(BadPair, match="40000 points that would take minutes"):
        fill((1000, 1000), zigzag)
    with pytest.raises(BadPair, match="coordinate beyond"):
        fill((9, 9), np.array([[0, -(1 << 30)], [5, 5]]))


def test_mutated_files_are_painted_or_refused_by_name() -> None:
    random = Random(3)
    text = "\n".join(case["line"] for case in CASES[:4]).encode()
    refused = sum(
        painted_or_refused(lambda data: yolo.read(data, NAMES), mutated_bytes(text, random)) for _ in range(300)
    )
    assert 60 < refused < 290


def test_a_list_in_which_a_key_occurs_twice_is_refused() -> None:
    for text in (b"names: [a, b]\nnames: [b, a]\n", b"names: {0: a, 0: b}"):
        with pytest.raises(BadPair, match=r"has a table in which the key '(names|0)' occurs twice; keep one"):
            yolo.FORMAT.names_of(text)
