"""The plain rule: centres inside a polygon, by even and odd crossings, as GDAL paints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from facts.write_facts import read_facts, unpacked
from numpy.typing import NDArray

from packer.annotations import even_odd
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.paint import window
from packer.errors import BadPair
from readers.contract.tiles import Size

CASES = read_facts("even_odd")


@pytest.fixture(params=["kernel", "numpy"], autouse=True)
def _with_or_without_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(even_odd, "KERNEL", None)
    elif even_odd.KERNEL is None:
        pytest.skip("the kernels are turned off or not compiled")


def paint(size: Size, *rings: Any) -> NDArray[np.uint8]:
    mask = EvenOddPolygon(tuple(np.array(ring, np.float64).reshape(-1, 2) for ring in rings)).paint(size)
    painted = np.zeros(size, np.uint8)
    window(painted, mask)[mask.inside] = 1
    return painted


def _box(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def test_every_pixel_is_that_of_gdal() -> None:
    assert len(CASES) >= 100
    for case in CASES:
        size = (case["size"][0], case["size"][1])
        np.testing.assert_array_equal(paint(size, *case["rings"]), unpacked(case["inside"], size, "u1"), str(case))


def test_crossings_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(even_odd, "KERNEL", None)
    monkeypatch.setattr(even_odd, "_AT_ONCE", 3)
    test_every_pixel_is_that_of_gdal()


def test_a_ring_within_is_a_hole_whatever_its_direction() -> None:
    for hole in (_box(2, 2, 4, 4), _box(2, 2, 4, 4)[::-1]):
        painted = paint((6, 6), _box(1, 1, 5, 5), hole)
        assert painted.sum() == 16 - 4
        assert not painted[2:4, 2:4].any()


def test_polygons_that_share_a_border_share_no_pixel() -> None:
    """Also if the border runs through centres of pixels."""
    for border in (3, 3.5):
        left, right = paint((6, 6), _box(0, 0, border, 6)), paint((6, 6), _box(border, 0, 6, 6))
        above, below = paint((6, 6), _box(0, 0, 6, border)), paint((6, 6), _box(0, border, 6, 6))
        assert (left + right == 1).all()
        assert (above + below == 1).all()


@pytest.mark.parametrize("ring", [[], [[1, 1]], [[1, 1], [4, 4]], _box(-9, -9, -1, -1), _box(9, 0, 12, 5)])
def test_shapes_without_a_pixel_are_empty(ring: list[list[float]]) -> None:
    assert not paint((6, 6), ring).any()


def test_a_polygon_that_takes_minutes_is_refused() -> None:
    zigzag = np.array([(index % 7, 3_000 * (index % 2)) for index in range(100_000)], np.float64)
    with pytest.raises(BadPair, match=r"100000 edges cross 300000000 rows"):
        EvenOddPolygon((zigzag,)).paint((4_000, 9))
