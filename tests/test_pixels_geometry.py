"""Labels are resized by the nearest pixel centre, images by an exact area mean; padding is ignored."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_geometry import area

from packer.pixels.choices import FITS, INTERPOLATIONS
from packer.pixels.class_lookup import IGNORE
from packer.pixels.nearest_lines import nearest_source
from packer.pixels.resize import Geometry

SIDES = st.integers(1, 40)
WHOLE = tuple(fit for fit in FITS if fit not in ("tile", "native"))
"""The fits that turn a whole picture into one row of a given size."""


@given(SIDES, SIDES)
def test_nearest_takes_the_pixel_under_the_centre(source: int, target: int) -> None:
    wanted = [int(Fraction(2 * i + 1, 2) * source / target) for i in range(target)]
    assert (
        nearest_source(source, target).tolist()
        == wanted
        == [(2 * i + 1) * source // (2 * target) for i in range(target)]
    )


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), st.sampled_from(WHOLE), st.integers(0, 99))
def test_labels_never_gain_a_class(source: tuple[int, int], target: tuple[int, int], fit: str, seed: int) -> None:
    index = np.random.default_rng(seed).integers(0, 7, source).astype(np.uint16)
    out = Geometry(target, fit).label(index)
    assert out.shape == target
    assert out.dtype == np.uint16
    padding = {IGNORE} if fit != "stretch" else set()
    assert set(out.reshape(-1).tolist()) <= set(index.reshape(-1).tolist()) | padding


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), st.sampled_from(WHOLE), st.sampled_from(INTERPOLATIONS))
def test_image_and_label_are_padded_alike(
    source: tuple[int, int], target: tuple[int, int], fit: str, interpolation: str
) -> None:
    geometry = Geometry(target, fit, interpolation)
    image = geometry.image(np.full((*source, 3), 200, np.uint8))
    label = geometry.label(np.zeros(source, np.uint16))
    assert image.shape == (3, *target)
    assert np.array_equal(image[0] == 0, label == IGNORE)
    assert set(np.unique(image)) <= {0, 200}


@settings(deadline=None)
@given(st.tuples(SIDES, SIDES), st.data())
def test_shrinking_is_the_exact_area_mean(source: tuple[int, int], data: st.DataObject) -> None:
    target = data.draw(st.tuples(st.integers(1, source[0]), st.integers(1, source[1])))
    image = np.random.default_rng(source).integers(0, 256, (*source, 3), dtype=np.uint8)
    assert np.array_equal(Geometry(target).image(image), area(image, target).transpose(2, 0, 1))


def test_halves_are_rounded_to_even() -> None:
    image = np.array([[[0], [1], [1], [2]]], np.uint8).repeat(2, 0).repeat(3, 2)  # OpenCV makes 1 of the first half
    assert Geometry((1, 2)).image(image)[0].tolist() == [[0, 2]]


def test_growing_is_linear_between_pixel_centres() -> None:
    image = np.repeat(np.array([[0, 100]], np.uint8)[..., None], 3, axis=2)
    assert Geometry((1, 4)).image(image)[0, 0].tolist() == [0, 25, 75, 100]


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_one_side_may_shrink_while_the_other_grows(interpolation: str) -> None:
    image = np.full((40, 10, 3), 77, np.uint8)
    assert (Geometry((10, 40), interpolation=interpolation).image(image) == 77).all()


def test_shrinking_does_not_alias_but_where_asked_to() -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    assert np.ptp(Geometry((16, 16)).image(stripes)) == 0
    assert np.ptp(Geometry((16, 16), interpolation="cubic").image(stripes)) == 0
    assert set(np.unique(Geometry((16, 16), interpolation="nearest").image(stripes))) <= {0, 255}


def test_nearest_images_follow_the_rule_of_labels() -> None:
    index = np.arange(35, dtype=np.uint8).reshape(5, 7)
    geometry = Geometry((9, 4), interpolation="nearest")
    assert np.array_equal(geometry.image(np.stack([index] * 3, -1))[0], geometry.label(index.astype(np.uint16)))


def test_letterbox_keeps_the_shape_and_centres() -> None:
    label = Geometry((10, 10), "letterbox").label(np.zeros((20, 10), np.uint16))
    assert (label == IGNORE).all(axis=0).tolist() == [True, True, False, False, False, False, False, True, True, True]
    assert not (label == IGNORE).all(axis=1).any()


def test_crop_or_pad_keeps_pixels_as_they_are() -> None:
    index = np.arange(25, dtype=np.uint16).reshape(5, 5)
    assert np.array_equal(Geometry((3, 3), "crop-or-pad").label(index), index[1:4, 1:4])
    padded = Geometry((7, 3), "crop-or-pad").label(index)
    assert np.array_equal(padded[1:6], index[:, 1:4])
    assert (padded[[0, 6]] == IGNORE).all()


def test_the_stored_size_leaves_pictures_as_they_are() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    for fit in FITS:
        assert np.array_equal(Geometry((6, 9), fit).image(image), image.transpose(2, 0, 1))


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES))
def test_shorter_side_fills_the_size_and_cuts_only_one_side(source: tuple[int, int], target: tuple[int, int]) -> None:
    rows = np.repeat(np.arange(source[0], dtype=np.uint16)[:, None], source[1], 1)
    columns = np.repeat(np.arange(source[1], dtype=np.uint16)[None], source[0], 0)
    geometry = Geometry(target, "shorter-side")
    tall, wide = geometry.label(rows), geometry.label(columns)
    assert IGNORE not in tall
    whole_height = np.array_equal(tall[:, 0], nearest_source(source[0], target[0]))
    whole_width = np.array_equal(wide[0], nearest_source(source[1], target[1]))
    assert whole_height or whole_width


def test_shorter_side_keeps_the_shape_and_the_middle() -> None:
    index = np.arange(8, dtype=np.uint16)[None].repeat(4, 0)
    assert Geometry((2, 2), "shorter-side").label(index).tolist() == [[3, 5], [3, 5]]


@given(st.tuples(SIDES, SIDES), st.integers(0, 99))
def test_native_is_the_picture(source: tuple[int, int], seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (*source, 3), dtype=np.uint8)
    assert np.array_equal(Geometry(None, "native").image(image), image.transpose(2, 0, 1))
