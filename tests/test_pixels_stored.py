"""Numbers of any type and any number of bands at the stored size, against definitions written one pixel at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.pixels.area import area_mean
from packer.pixels.choices import INTERPOLATIONS
from packer.pixels.nearest_lines import store_nearest
from packer.pixels.resize import Geometry
from packer.pixels.stored_picture import store_picture
from packer.pixels.valid_mean import is_valid, store_valid_mean
from readers.contract.bits import bit_planes, has_other_bits, pack_bits, unpack_bits

DTYPES = ("|u1", "<u2", "<i2", "<f2", "<f4")
SIDES = st.integers(1, 17)
SIZES = st.tuples(SIDES, SIDES)
WHOLE = ("stretch", "letterbox", "crop-or-pad", "shorter-side")


def noise(shape: tuple[int, ...], dtype: str, seed: int, levels: int = 0) -> NDArray[Any]:
    """Return random numbers over the whole range of a type, or of a few levels, whose means are often halves."""
    dice = np.random.default_rng(seed)
    if levels:
        return dice.integers(0, levels, shape).astype(dtype)
    if dtype[1] == "f":
        limit = float(np.finfo(dtype).max)
        return (dice.uniform(-1, 1, shape) * 10.0 ** dice.integers(-3, math.floor(math.log10(limit)), shape)).astype(
            dtype
        )
    limits = np.iinfo(dtype)
    return dice.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def covered(source: int, target: int, number: int) -> list[tuple[int, Fraction]]:
    """Return the source pixels under a target pixel, each with the part of it that is covered."""
    begin, end = Fraction(number * source, target), Fraction((number + 1) * source, target)
    return [(i, min(end, Fraction(i + 1)) - max(begin, Fraction(i))) for i in range(int(begin), -int(-end // 1))]


def is_rounded(found: Any, exact: Fraction) -> bool:
    """Return whether a number is the nearest one of its type to an exact one, up to the rounding of float64."""
    if found.dtype.kind != "f":
        return int(found) == round(exact)  # halves to even
    return abs(Fraction(float(found)) - exact) <= Fraction(float(np.spacing(abs(found)))) * Fraction(501, 1000)


@given(SIZES, st.data(), st.sampled_from(DTYPES), st.integers(1, 5), st.integers(0, 99), st.sampled_from((0, 2, 5)))
def test_the_area_mean_of_any_type_is_exact(
    source: tuple[int, int], data: st.DataObject, dtype: str, bands: int, seed: int, levels: int
) -> None:
    tall, wide = data.draw(st.integers(1, source[0])), data.draw(st.integers(1, source[1]))
    pixels, planes = noise((*source, bands), dtype, seed, levels), np.empty((bands, tall, wide), dtype)
    area_mean(pixels, planes)
    area = Fraction(source[0] * source[1], tall * wide)
    for band, y, x in np.ndindex(planes.shape):
        parts = [(i, j, p * q) for i, p in covered(source[0], tall, y) for j, q in covered(source[1], wide, x)]
        numbers = [Fraction(pixels[i, j, band].item()) for i, j, _ in parts]
        exact = sum((number * part for number, (_, _, part) in zip(numbers, parts, strict=True)), Fraction(0)) / area
        slack = max(map(abs, numbers)) * Fraction(1, 2**44)  # float64 sums numbers of different size
        found = planes[band, y, x]
        assert is_rounded(found, exact) or (found.dtype.kind == "f" and abs(Fraction(float(found)) - exact) <= slack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_and_the_smallest_number_stay_in_a_mean(dtype: str) -> None:
    limits: Any = np.finfo(dtype) if dtype[1] == "f" else np.iinfo(dtype)
    for number in (limits.min, limits.max):
        for source, target in (((3, 70_001), (2, 7)), ((70_001, 3), (7, 2)), ((1009, 2003), (64, 97))):
            planes = np.empty((2, *target), dtype)
            area_mean(np.full((*source, 2), number, dtype), planes)
            assert (planes == limits.dtype.type(number)).all()


def test_the_mean_of_floats_is_rounded_once() -> None:
    """In float32 the sum of the first two would lose the third."""
    pixels = np.array([[[2.0**24], [1], [1], [-(2.0**24)]]], "<f4")
    planes = np.empty((1, 1, 1), "<f4")
    area_mean(pixels, planes)
    assert planes.item() == 0.5


@given(SIZES, SIZES, st.sampled_from(WHOLE), st.sampled_from(INTERPOLATIONS), st.integers(0, 99))
def test_a_picture_of_bytes_is_stored_like_an_image(
    source: tuple[int, int], target: tuple[int, int], fit: str, interpolation: str, seed: int
) -> None:
    """OpenCV rounds a cubic of three bands together in another way than band by band."""
    geometry, pixels = Geometry(target, fit, interpolation), noise((*source, 3), "|u1", seed)
    planes = np.full((3, *target), 77, np.uint8)
    store_picture(pixels, geometry.placement(source), interpolation, planes)
    differ = np.abs(planes.astype(int) - geometry.image(pixels))
    assert differ.max() <= (1 if interpolation == "cubic" else 0)


@given(SIZES, SIZES, st.sampled_from(WHOLE), st.sampled_from(INTERPOLATIONS), st.sampled_from(DTYPES))
def test_pictures_labels_and_values_are_padded_alike(
    source: tuple[int, int], target: tuple[int, int], fit: str, interpolation: str, dtype: str
) -> None:
    placement = Geometry(target, fit, interpolation).placement(source)
    planes = np.full((13, *target), 77, dtype)
    store_picture(np.full((*source, 13), 50, dtype), placement, interpolation, planes)
    values, classes = np.full(target, 77, dtype), np.full(target, 77, np.uint16)
    store_valid_mean(np.full(source, 50, dtype), placement, 9, values)
    store_nearest(np.full(source, 50, np.uint16), placement, 9, classes)
    outside = classes == 9
    assert outside.any() == placement.is_filled
    grown = 1e-5 if np.dtype(dtype).kind == "f" else 0  # OpenCV grows pictures in float32
    assert (np.abs(planes - np.where(outside, 0, 50.0)) <= grown).all()
    assert (values == np.where(outside, 9, 50)).all()
    assert ((classes == 50) | outside).all()


@pytest.mark.parametrize("dtype", ["<f2", "<f4"])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_no_picture_of_floats_becomes_infinite(dtype: str, interpolation: str) -> None:
    limits = np.finfo(dtype)
    pixels = np.where(np.indices((9, 9)).sum(0) % 2, limits.max, limits.min).astype(dtype)[..., None]
    for target in ((40, 31), (5, 31), (4, 4)):
        planes = np.empty((1, *target), dtype)
        store_picture(pixels, Geometry(target, "stretch", interpolation).placement((9, 9)), interpolation, planes)
        assert np.isfinite(planes).all()


@given(SIZES, st.sampled_from(DTYPES), st.integers(1, 16), st.data())
def test_tiles_hold_the_pixels_of_every_band(
    source: tuple[int, int], dtype: str, bands: int, data: st.DataObject
) -> None:
    geometry = Geometry(
        (5, 4), "tile", overlap=data.draw(st.integers(0, 3)), edge=data.draw(st.sampled_from(("pad", "shift")))
    )
    pixels = noise((*source, bands), dtype, bands)
    for origin in geometry.origins(source):
        assert origin is not None
        planes = np.full((bands, 5, 4), 77, dtype)
        store_picture(pixels, geometry.placement(source, origin), "area", planes)
        expected = np.zeros_like(planes)
        part = pixels[origin[0] : origin[0] + 5, origin[1] : origin[1] + 4].transpose(2, 0, 1)
        expected[:, : part.shape[1], : part.shape[2]] = part
        assert np.array_equal(planes, expected)


@given(SIZES, SIZES, st.sampled_from(WHOLE), st.sampled_from(("<u4", "|u1", "<f4")), st.sampled_from(((), (3,))))
def test_nearest_takes_the_pixel_under_the_centre(
    source: tuple[int, int], target: tuple[int, int], fit: str, dtype: str, planes: tuple[int, ...]
) -> None:
    placement = Geometry(target, fit).placement(source)
    numbers, out = noise((*planes, *source), dtype, 3), np.empty((*planes, *target), dtype)
    store_nearest(numbers, placement, 5, out)
    expected = np.full_like(out, 5)
    for y, x in np.ndindex(*(part.stop - part.start for part in placement.taken)):
        i, j = (
            int(Fraction(2 * (number + part.start) + 1, 2) * side / scaled)
            for number, part, side, scaled in zip((y, x), placement.taken, source, placement.scaled, strict=True)
        )
        expected[..., y + placement.region[0].start, x + placement.region[1].start] = numbers[..., i, j]
    assert np.array_equal(out, expected)


def mean_of_valid(values: NDArray[Any], size: tuple[int, int], y: int, x: int, fill: float) -> Fraction | None:
    """Return the mean of the two nearest pixels of each side by their distance, or None if too few are valid."""

    def nearest_two(source: int, target: int, number: int) -> list[tuple[int, Fraction]]:
        centre = Fraction(2 * number + 1, 2) * source / target - Fraction(1, 2)
        first = math.floor(centre)
        pairs = ((first, 1 - (centre - first)), (first + 1, centre - first))
        return [(min(max(pixel, 0), source - 1), weight) for pixel, weight in pairs]

    total, weights = Fraction(0), Fraction(0)
    for i, tall in nearest_two(values.shape[0], size[0], y):
        for j, wide in nearest_two(values.shape[1], size[1], x):
            if is_valid(values[i, j], fill):
                total += tall * wide * Fraction(values[i, j].item())
                weights += tall * wide
    return total / weights if weights >= Fraction(1, 2) else None


@given(SIZES, SIZES, st.sampled_from(("<u2", "<i2", "<f2", "<f4")), st.integers(0, 99), st.data())
def test_values_are_scaled_over_the_valid_pixels(
    source: tuple[int, int], target: tuple[int, int], dtype: str, seed: int, data: st.DataObject
) -> None:
    fill = data.draw(st.sampled_from((math.nan, 3.0) if dtype[1] == "f" else (0.0, 3.0)))
    values = noise(source, dtype, seed, data.draw(st.sampled_from((0, 5))))
    values[np.random.default_rng(seed).random(source) < data.draw(st.sampled_from((0, 0.3, 0.9, 1)))] = fill
    out = np.empty(target, dtype)
    store_valid_mean(values, Geometry(target).placement(source), fill, out)
    largest = Fraction(float(np.nanmax(np.abs(values.astype("f8")), initial=0)))
    for y, x in np.ndindex(target):
        exact, found = mean_of_valid(values, target, y, x, fill), out[y, x]
        if exact is None:
            assert not is_valid(found, fill)
        else:
            slack = largest / 2**48 if dtype[1] == "f" else 0
            assert is_rounded(found, exact) or abs(Fraction(float(found)) - exact) <= slack


def test_half_of_the_weights_are_enough() -> None:
    values = np.array([[math.nan, 6]], "<f4")
    out = np.empty((1, 6), "<f4")
    store_valid_mean(values, Geometry((1, 6)).placement((1, 2)), math.nan, out)
    assert np.array_equal(out, np.array([[math.nan] * 3 + [6] * 3], "<f4"), equal_nan=True)
    middle = np.empty((1, 1), "<f4")
    store_valid_mean(values, Geometry((1, 1)).placement((1, 2)), math.nan, middle)
    assert middle.item() == 6


def test_a_field_of_the_stored_size_stays_as_it_is() -> None:
    values = noise((6, 9), "<f4", 1)
    values[2, 3] = math.nan
    out = np.empty_like(values)
    store_valid_mean(values, Geometry((6, 9)).placement((6, 9)), math.nan, out)
    assert np.array_equal(out, values, equal_nan=True)


@given(st.integers(1, 40), SIZES, st.lists(st.integers(1, 3), max_size=1), st.integers(0, 99))
def test_bits_become_planes_again(classes: int, size: tuple[int, int], depth: list[int], seed: int) -> None:
    planes = np.random.default_rng(seed).integers(0, 2, (classes, *depth, *size)).astype(np.uint8)
    packed = pack_bits(planes)
    assert packed.shape == (bit_planes(classes), *depth, *size)
    for number in range(bit_planes(classes) * 8):
        bit = packed[number // 8] >> number % 8 & 1
        assert np.array_equal(bit, planes[number] if number < classes else np.zeros_like(bit))
    assert np.array_equal(unpack_bits(packed, classes), planes)
    assert not has_other_bits(packed, classes)
    packed[-1, ..., 0, 0] |= 1 << (classes % 8)
    assert has_other_bits(packed, classes) == (classes % 8 > 0)
