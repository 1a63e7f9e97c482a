"""Polygons and run lengths of COCO paint the pixels of pycocotools, and hostile ones are refused by name."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from drills.coco_shapes import KINDS, made, painted, reference

from packer.annotations import coco_polygon as polygon_module
from packer.annotations.annotation import Mask
from packer.annotations.coco_polygon import coco_polygon
from packer.annotations.paint import window
from packer.annotations.run_lengths import run_lengths
from packer.errors import BadPair


@pytest.fixture(params=["kernel", "numpy"], autouse=True)
def _with_or_without_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(polygon_module, "KERNEL", None)
    elif polygon_module.KERNEL is None:
        pytest.skip("the kernels are turned off or not compiled")


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_every_pixel_is_that_of_pycocotools(kind: int) -> None:
    for number in range(kind, 30 * len(KINDS), len(KINDS)):
        _, rings, size = made(number)
        expected = reference(rings, size)
        for found in painted(rings, size, expected):
            np.testing.assert_array_equal(found, expected, f"number {number}")


def test_very_many_crossings_are_computed_in_parts() -> None:
    points = np.random.default_rng(0).uniform(-5, 70, 600).tolist()
    whole = coco_polygon(points).paint((50, 60))
    with mock.patch.object(polygon_module, "TOGETHER", 100):
        parts = coco_polygon(points).paint((50, 60))
    assert _shown(whole) == _shown(parts)


def test_the_window_is_as_small_as_the_object() -> None:
    mask = coco_polygon([10, 10, 14, 10, 14, 13, 10, 13]).paint((400, 600))
    assert (mask.top, mask.left, mask.inside.shape) == (10, 10, (3, 4))
    assert mask.inside.all()


def test_far_coordinates_take_no_memory() -> None:
    """pycocotools lists every fifth of a pixel of such an outline: here two thousand million points."""
    far = 1.5e8
    mask = coco_polygon([-far, -far, far, -far, far, far, -far, far]).paint((30, 40))
    assert mask.inside.all()
    assert mask.inside.shape == (30, 40)


@pytest.mark.parametrize(
    ("ring", "words"),
    [
        ([1, 2, 3, 4, 5], "5 numbers; a point has two"),
        ([1, 2, 3, "4"], "not a list of numbers"),
        ([1, 2, 3, True], "not a list of numbers"),
        ("text", "not a list of numbers"),
        ([0, 0, float("nan"), 1, 1, 1], "beyond 200000000"),
        ([0, 0, 3e8, 1, 1, 1], "beyond 200000000"),
        ([0, 0, 10**400, 1, 1, 1], "beyond 200000000"),
        ([0.0] * 22, "11 points; 10 are read"),
    ],
)
def test_bad_outlines_are_refused(ring: object, words: str) -> None:
    with mock.patch.object(polygon_module, "MOST_POINTS", 10), pytest.raises(BadPair, match=words):
        coco_polygon(ring)


def test_outlines_that_cross_too_often_are_refused() -> None:
    zigzag = coco_polygon([0, 0, 1e6, 5] * 500)
    with pytest.raises(BadPair, match="crosses columns 100000000 times"):
        zigzag.paint((10, 100_000))


@pytest.mark.parametrize(
    ("counts", "size", "words"),
    [
        ([5], [2, 3], "5 pixels in all, and 3x2 are 6"),
        ([2, 5], [2, 3], "7 pixels in all"),
        ([7, -1], [2, 3], "negative length"),
        ([1, 2.5, 2.5], [2, 3], "not a whole number"),
        ([1, 10**30], [2, 3], "not a whole number"),
        ([], [2, 3], "0 pixels in all"),
        ("", [2, 3], "other characters"),
        ("1\n5", [2, 3], "other characters"),
        ("1é5", [2, 3], "other characters"),
        ("15P", [2, 3], "ends within a number"),
        ("PPPPPPPPPPPPPPPPPPPPPPPP1", [2, 3], "a run length of 25 characters"),
        ("O", [2, 3], "negative length"),
        ({}, [2, 3], "neither a list nor a text"),
        ([6], [2, 0], "the size"),
        ([6], None, "the size"),
        ([6], [2, 3.0], "the size"),
    ],
)
def test_bad_run_lengths_are_refused(counts: object, size: object, words: str) -> None:
    with pytest.raises(BadPair, match=words):
        run_lengths(counts, size)


def test_run_lengths_of_another_picture_are_refused() -> None:
    with pytest.raises(BadPair, match="for 3x2, and the picture is 2x3"):
        run_lengths([6], [2, 3]).paint((3, 2))


def _shown(mask: Mask) -> list[list[bool]]:
    picture = np.zeros((80, 80), np.bool_)
    window(picture, mask)[...] = mask.inside
    found: list[list[bool]] = picture.tolist()
    return found
