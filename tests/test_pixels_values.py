"""Fields of measured values: numbers are stored as they are or rounded once, and missing ones are the fill."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drills.band_files import array_file, blocks_tiff
from handmade import chunk, encoded_as, png, tiff
from hypothesis import given
from hypothesis import strategies as st
from number_kinds import GEOMETRIES, SIZES, files_of, rows_of, sampled
from numpy.typing import NDArray

from packer.decoding.decode import header_of
from packer.errors import BadPair, UsageError
from packer.pixels.number_rules import LINEAR, ValueRules
from packer.pixels.resize import Geometry
from packer.pixels.valid_mean import store_valid_mean
from packer.pixels.value_codec import ValueCodec, value_dtype, value_fill
from packer.recipe.source import PackedPixels
from readers.contract.fields import Field
from readers.contract.kinds import INDEX, VALUES

STORED = {"|b1": "<u2", "|u1": "<u2", "<u2": "<u2", "|i1": "<i2", "<i2": "<i2", "<f2": "<f2", "<f4": "<f4"}


def field(rules: ValueRules, dtype: str, geometry: Geometry) -> Field:
    size = geometry.size or (None, None)
    return Field("depth", VALUES, INDEX, dtype, size, fill=value_fill(rules, dtype))


def measured(size: tuple[int, int], dtype: str, seed: int, invalid: float | None) -> NDArray[Any]:
    """Return numbers over the whole range of a type, some of them invalid."""
    dice = np.random.default_rng(seed)
    numbers: NDArray[Any]
    if dtype[1] == "f":
        limit = np.log10(float(np.finfo(dtype).max))
        numbers = (10 ** dice.uniform(-3, limit - 0.1, size) * dice.choice((-1, 1), size)).astype(dtype)
        numbers[dice.random(size) < 0.1] = np.nan
    elif dtype == "|b1":
        numbers = dice.random(size) < 0.5
    else:
        limits = np.iinfo(dtype)
        numbers = dice.integers(limits.min, limits.max, size, dtype, endpoint=True)
    if invalid is not None:
        numbers[dice.random(size) < 0.2] = invalid
    return numbers


def bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are equal where the stored bytes are."""
    same: NDArray[Any] = values.view(f"<u{values.itemsize}")
    return same


@given(SIZES, st.sampled_from(list(STORED)), st.sampled_from((None, 0, 1)), GEOMETRIES, st.data())
def test_every_value_is_stored_as_it_is(
    size: tuple[int, int], dtype: str, invalid: float | None, geometry: Geometry, data: st.DataObject
) -> None:
    numbers, rules, stored = measured(size, dtype, sum(size), invalid), ValueRules(invalid), STORED[dtype]
    unmeasured = {"<u2": 0, "<i2": -32768}.get(stored, math.nan)
    fill = unmeasured if invalid is None or dtype[1] == "f" else invalid
    expected = numbers.astype(stored)
    if dtype[1] == "f":
        expected[np.isnan(numbers) | (numbers == invalid if invalid is not None else False)] = math.nan
    file = data.draw(st.sampled_from(list(files_of(numbers).values())))
    assert value_dtype(header_of(file), rules) == stored
    for origin, row in rows_of(field(rules, stored, geometry), rules, geometry, file):
        assert np.array_equal(bits(row), bits(sampled(expected, geometry, origin, fill)))


@given(SIZES, st.sampled_from(list(STORED)), st.sampled_from((None, 0)), GEOMETRIES)
def test_linear_values_are_means_of_valid_pixels(
    size: tuple[int, int], dtype: str, invalid: float | None, geometry: Geometry
) -> None:
    """Another test compares these means with their definition."""
    numbers, stored = measured(size, dtype, sum(size), invalid), STORED[dtype]
    rules = ValueRules(invalid, interpolation=LINEAR)
    depth = field(rules, stored, geometry)
    values = ValueCodec(rules, stored, depth.fill).converted(numbers.view("u1") if dtype == "|b1" else numbers)
    for origin, row in rows_of(depth, rules, geometry, numbers):
        expected = np.empty_like(row)
        store_valid_mean(values, geometry.placement(size, origin), depth.fill_number, expected)
        assert np.array_equal(bits(row), bits(expected))


@given(
    st.lists(st.integers(0, 65535), min_size=1, max_size=30),
    st.floats(1e-6, 1e3).map(lambda scale: scale if scale != 1 else 0.5),
    st.sampled_from(("<f2", "<f4")),
)
def test_a_scale_multiplies_and_rounds_once(numbers: list[int], scale: float, dtype: str) -> None:
    codec = ValueCodec(ValueRules(7, scale), dtype, "nan")
    pixels = np.array([numbers], "<u2")
    exact = [float(Fraction(number) * Fraction(scale)) for number in numbers]  # float64, rounded once
    with np.errstate(over="ignore"):
        expected = np.array([exact]).astype(dtype)
    expected[pixels == 7] = np.nan
    if np.isinf(expected).any():
        with pytest.raises(BadPair, match="which is too large for float16"):
            codec.read(pixels)
        return
    assert np.array_equal(bits(codec.read(pixels)), bits(expected))
    assert value_dtype(header_of(pixels), ValueRules(7, scale)) == "<f4"


@pytest.mark.parametrize(
    ("dtype", "rules", "fill"),
    [
        ("<u2", ValueRules(), 0),
        ("<u2", ValueRules(65535), 65535),
        ("<i2", ValueRules(), -32768),
        ("<i2", ValueRules(-9999.0), -9999),
        ("<f2", ValueRules(0), "nan"),
        ("<f4", ValueRules(), "nan"),
    ],
)
def test_the_fill_marks_what_was_not_measured(dtype: str, rules: ValueRules, fill: float | str) -> None:
    found = value_fill(rules, dtype)
    assert (found, type(found)) == (fill, type(fill))


@pytest.mark.parametrize(("dtype", "invalid"), [("<u2", -9999), ("<i2", 65535), ("<u2", 0.5)])
def test_an_invalid_number_that_a_field_cannot_hold_is_refused(dtype: str, invalid: float) -> None:
    with pytest.raises(UsageError, match=f"invalid {invalid}: whole numbers keep it .* {np.dtype(dtype).name} cannot"):
        value_fill(ValueRules(invalid), dtype)


def test_an_invalid_number_is_rounded_as_the_file_rounds_it() -> None:
    lowest = -3.4028234663852886e38
    for written in (lowest, -3.4028235e38):
        numbers = np.array([[lowest, 1.5]], "<f4")
        assert np.isnan(ValueCodec(ValueRules(written), "<f4", "nan").read(numbers)).tolist() == [[True, False]]
    assert ValueCodec(ValueRules(1e9), "<f2", "nan").read(np.ones((1, 1), "<f2")).tolist() == [[1]]
    assert ValueCodec(ValueRules(300), "<u2", 300).read(np.full((1, 1), 44, "|u1")).tolist() == [[44]]


def test_a_pixel_with_the_fill_of_whole_numbers_counts_as_not_measured() -> None:
    rules = ValueRules()
    depth = field(rules, "<u2", Geometry((1, 3)))
    ((_, row),) = rows_of(depth, rules, Geometry((1, 3)), np.array([[0, 5, 6]], np.uint16))
    assert row.tolist() == [[0, 5, 6]]


def test_a_row_of_a_pack_is_taken_or_converted() -> None:
    rules = ValueRules(-1)
    pixels = PackedPixels(np.array([[-1, 0, 7]], np.int16))
    geometry = Geometry((1, 3))
    ((_, row),) = rows_of(field(rules, "<f4", geometry), rules, geometry, pixels)
    assert np.array_equal(row, np.array([[np.nan, 0, 7]], "f4"), equal_nan=True)


def test_files_of_64_bits_need_a_stated_type() -> None:
    for dtype, kind in (("<f8", "floating-point"), ("<i4", "whole"), ("<u8", "whole")):
        numbers = np.arange(20).reshape(4, 5).astype(dtype)
        with pytest.raises(BadPair, match=f"has {kind} numbers of {8 * numbers.itemsize} bits; values have 16 bits"):
            value_dtype(header_of(numbers), ValueRules())
        assert value_dtype(header_of(numbers), ValueRules(scale=0.5)) == "<f4"
        for data in (array_file(numbers), blocks_tiff(numbers[..., None])) if numbers.itemsize < 8 else (numbers,):
            assert np.array_equal(ValueCodec(ValueRules(), "<f4", "nan").read(data), numbers)


def one_odd(dtype: str, number: float) -> NDArray[Any]:
    numbers = np.ones((4, 5), dtype)
    numbers[2, 3] = number
    return numbers


BEYOND: dict[str, tuple[NDArray[Any], str, str]] = {
    "infinite": (one_odd("<f4", math.inf), "<f4", "the number inf at row 2, column 3, which is not finite"),
    "minus infinite": (one_odd("<f8", -math.inf), "<u2", "the number -inf at row 2, column 3, which is not finite"),
    "float64": (one_odd("<f8", 1e39), "<f4", r"the number 1e\+39 at row 2, column 3, which is too large for float32"),
    "float16": (one_odd("<u2", 65535), "<f2", "the number 65535 at row 2, column 3, which is too large for float16"),
    "negative": (one_odd("<i2", -1), "<u2", "the number -1 at row 2, column 3; uint16 holds 0 to 65535; store float32"),
    "large": (one_odd("<u4", 70000), "<u2", "the number 70000 at row 2, column 3; uint16 holds 0 to 65535"),
    "large float": (one_odd("<f4", 70000), "<i2", "the number 70000 at row 2, column 3; int16 holds -32768 to 32767"),
    "fraction": (one_odd("<f4", 1.5), "<u2", "the number 1.5 at row 2, column 3, which is not a whole number"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_number_that_the_type_does_not_have_is_named_with_its_position(name: str) -> None:
    numbers, dtype, words = BEYOND[name]
    codec = ValueCodec(ValueRules(), dtype, value_fill(ValueRules(), dtype))
    for data in (numbers, array_file(numbers)):
        with pytest.raises(BadPair, match=f"has {words}"):
            codec.read(data)


def test_an_infinite_product_is_refused() -> None:
    with pytest.raises(BadPair, match=r"has the number inf at row 2, column 3, which is not finite"):
        ValueCodec(ValueRules(scale=1e300), "<f4", "nan").read(one_odd("<f8", 1e200))


GRAY = np.arange(20, dtype=np.uint8).reshape(4, 5)
RGB = np.repeat(GRAY[..., None], 3, axis=2)
REFUSED: dict[str, tuple[bytes | NDArray[Any], str]] = {
    "JPEG": (encoded_as(".jpg", GRAY), "is a JPEG with lossy compression, which changes values; use PNG"),
    "white": (tiff(GRAY, t262=(0,)), "is a TIFF in which white is zero: in values some programs"),
    "colours": (encoded_as(".png", RGB), "has 3 channels; a value is the number of a gray pixel"),
    "bands": (blocks_tiff(np.dstack([RGB, RGB])), "has 6 channels; a value is"),
    "palette": (png(GRAY, 8, 3, chunk(b"PLTE", bytes(60))), "has a palette; values are the numbers of gray pixels"),
    "transparent": (tiff(np.dstack([GRAY, GRAY])), "has transparent pixels, whose numbers may not count"),
    "marked": (png(GRAY, 8, 0, chunk(b"tRNS", b"\0\7")), "has transparent pixels, whose numbers may not"),
    "empty": (b"", "is empty"),
    "huge": (np.zeros((11, 10), np.uint8), "has 10x11 pixels; 1 to 100 are allowed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_holds_no_values_is_refused(name: str) -> None:
    data, words = REFUSED[name]
    with pytest.raises(BadPair, match=words):
        ValueCodec(ValueRules(), "<u2", 0, 100).read(data)
