"""The area mean is exact: the kernel, the Python code that stands in for it, and fractions give the same bytes."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.pixels import area
from packer.pixels.area import area_mean, area_mean_in_numpy, opencv_is_exact

needs_kernel = pytest.mark.skipif(area.KERNEL is None, reason="the kernels are turned off or not compiled")
Image = NDArray[np.uint8]
PHOTOS = [
    ((720, 960), (512, 512)),
    ((1280, 720), (512, 512)),
    ((768, 1024), (512, 512)),
    ((1024, 2048), (512, 1024)),
    ((1080, 1920), (512, 512)),
    ((375, 500), (375, 490)),
    ((1023, 769), (512, 101)),
    ((1500, 40), (3, 40)),
    ((40, 1500), (39, 9)),
    ((2, 100_003), (1, 33_000)),
]


def noise(shape: tuple[int, ...], seed: int, levels: int = 256) -> Image:
    """Return random bytes. Of few levels many means are halves."""
    values = np.random.default_rng(seed).integers(0, levels, shape) * (255 // (levels - 1))
    return values.astype(np.uint8)


def by_fractions(pixels: Image, height: int, width: int) -> Image:
    """Return the mean of each area as the definition says it, one pixel at a time."""

    def covered(source: int, target: int, number: int) -> list[tuple[int, Fraction]]:
        begin, end = Fraction(number * source, target), Fraction((number + 1) * source, target)
        return [(i, min(end, Fraction(i + 1)) - max(begin, Fraction(i))) for i in range(int(begin), -int(-end // 1))]

    planes = np.empty((pixels.shape[2], height, width), np.uint8)
    for plane, y, x in np.ndindex(planes.shape):
        down, across = covered(pixels.shape[0], height, y), covered(pixels.shape[1], width, x)
        total = sum((int(pixels[i, j, plane]) * p * q for i, p in down for j, q in across), Fraction(0))
        planes[plane, y, x] = round(total * height * width / (pixels.shape[0] * pixels.shape[1]))  # halves to even
    return planes


@given(st.data())
def test_every_way_gives_the_mean_of_fractions(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 40))
    tall, wide = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    assume(height * width * max(1, tall * wide // 64) < 4000)
    channels, gap = data.draw(st.integers(1, 4) | st.just(3)), data.draw(st.integers(0, 3))
    pixels = noise(
        (height, width + gap, channels), data.draw(st.integers(0, 99)), data.draw(st.sampled_from([2, 4, 256]))
    )
    expected = by_fractions(pixels[:, :width], tall, wide)
    for way in (area_mean, area_mean_in_numpy):
        whole = np.full((channels, tall + gap, wide + gap), 77, np.uint8)
        way(pixels[:, :width], whole[:, :tall, :wide])
        assert np.array_equal(whole[:, :tall, :wide], expected)
        assert (whole[:, tall:] == 77).all()
        assert (whole[:, :, wide:] == 77).all()


@needs_kernel
@pytest.mark.parametrize(("source", "target"), PHOTOS)
@pytest.mark.parametrize("levels", [2, 256])
def test_photographs_are_equal_with_and_without_the_kernel(
    source: tuple[int, int], target: tuple[int, int], levels: int
) -> None:
    pixels = noise((*source, 3), 5, levels)
    ours, theirs = np.empty((3, *target), np.uint8), np.empty((3, *target), np.uint8)
    area_mean(pixels, ours)
    area_mean_in_numpy(pixels, theirs)
    assert np.array_equal(ours, theirs)


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_opencv_is_used_only_where_it_is_exact(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 120)), data.draw(st.integers(1, 120))
    tall, wide = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    assume(opencv_is_exact((height, width), (tall, wide)))
    pixels = noise((height, width, data.draw(st.integers(1, 4))), height, data.draw(st.sampled_from([2, 4, 256])))
    ours, theirs = (np.empty((pixels.shape[2], tall, wide), np.uint8) for _ in range(2))
    with mock.patch.object(area, "KERNEL", None):
        area_mean(pixels, ours)
    area_mean_in_numpy(pixels, theirs)
    assert np.array_equal(ours, theirs)


def test_opencv_is_used_for_common_sizes_but_not_where_halves_occur() -> None:
    exact = [opencv_is_exact(source, target) for source, target in PHOTOS]
    assert exact == [True, True, False, False, True, False, False, False, False, False]


@pytest.mark.parametrize("value", [0, 1, 254, 255])
def test_one_colour_stays_that_colour(value: int) -> None:
    """No sum runs over: the brightest picture, a long side, sums beyond 32 bits."""
    for source, target in [
        ((3, 70_001), (2, 7)),
        ((70_001, 3), (7, 2)),
        ((4099, 4001), (1, 1)),
        ((4099, 4001), (64, 97)),
    ]:
        planes = np.empty((3, *target), np.uint8)
        area_mean(np.full((*source, 3), value, np.uint8), planes)
        assert (planes == value).all()


@pytest.mark.parametrize(("kind", "most"), [("f4", (1 << 16) - 1), ("f8", 1 << 44)])
def test_dividing_floats_rounds_correctly(kind: str, most: int) -> None:
    """The sums around each half, of the smallest totals, of the largest and of some between."""
    between = np.random.default_rng(1).integers(1, most, 300)
    for total in (*range(1, 100), *range(most - 100, most + 1), *between.tolist()):
        halves = (2 * np.arange(255, dtype=np.int64) + 1) * total // 2
        sums = (halves[:, None] + np.arange(-1, 3)).clip(0, 255 * total)
        means, rest = sums // total, sums % total
        means += 2 * rest + means % 2 > total
        assert np.array_equal(np.rint(sums.astype(kind) / np.asarray(total, kind)), means), total


@needs_kernel
@pytest.mark.parametrize(
    ("pixels", "planes"),
    [
        (np.zeros((4, 4, 3), np.uint8), np.zeros((3, 5, 2), np.uint8)),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((3, 2, 5), np.uint8)),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 2, 2), np.uint8)),
        (np.zeros((4, 4, 5), np.uint8), np.zeros((5, 2, 2), np.uint8)),
        (np.zeros((4, 4, 0), np.uint8), np.zeros((0, 2, 2), np.uint8)),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((3, 0, 2), np.uint8)),
        (np.zeros((4, 8, 3), np.uint8)[:, ::2], np.zeros((3, 2, 2), np.uint8)),
        (np.zeros((4, 4, 3), np.float32), np.zeros((3, 2, 2), np.uint8)),
        (np.zeros((4, 4, 3), np.uint8)[::-1], np.zeros((3, 2, 2), np.uint8)),
        (np.zeros((4, 4), np.uint8), np.zeros((3, 2, 2), np.uint8)),
        (np.broadcast_to(np.uint8(0), ((1 << 22) + 1, 1, 1)), np.zeros((1, 2, 1), np.uint8)),
    ],
)
def test_bad_buffers_are_refused(pixels: NDArray[np.uint8], planes: Image) -> None:
    assert area.KERNEL is not None
    with pytest.raises(ValueError, match=r"planes: expected|pixels: expected"):
        area.KERNEL.area_mean(pixels, planes)
