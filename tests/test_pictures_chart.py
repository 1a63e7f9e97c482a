"""Charts are well-formed SVG, show every number at its position, and escape all text."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readers.report.axes import Axis, round_ticks
from readers.report.chart import Series, line_chart, stacked_chart
from readers.report.page import page, table

SVG = "{http://www.w3.org/2000/svg}"
X, Y = Axis("threads"), Axis("samples/s")
numbers = st.floats(-1e12, 1e12) | st.sampled_from([math.nan, math.inf, 0.0])
HARM = "</title><script>alert('&')</script>"


def marks(svg: str) -> list[tuple[float, float]]:
    return [(float(mark.attrib["cx"]), float(mark.attrib["cy"])) for mark in ET.fromstring(svg).iter(f"{SVG}circle")]


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_points_lie_at_their_numbers() -> None:
    svg = line_chart("rates", X, Y, [Series("loader", [(1, 0), (2, 50), (3, 100)])])
    (left, foot), (middle, half), (right, top) = marks(svg)
    assert left < right
    assert middle == pytest.approx((left + right) / 2)
    assert half == pytest.approx((foot + top) / 2)
    assert foot > top
    assert {"rates", "threads", "samples/s", "loader", "1.0", "3.0", "100"} <= set(texts(svg))


def test_a_number_that_is_not_finite_is_a_gap() -> None:
    svg = line_chart("", X, Y, [Series("", [(1, 1), (2, math.nan), (3, 1), (4, 1)])])
    (path,) = (line.attrib["d"] for line in ET.fromstring(svg).iter(f"{SVG}path"))
    assert (path.count("M"), path.count("L")) == (2, 1)
    assert len(marks(svg)) == 3


def test_stacked_bars_add_up() -> None:
    svg = stacked_chart("", X, Y, [Series("a", [(1, 30), (2, 10)]), Series("b", [(1, 20), (2, math.nan)])])
    first, second = (bars.attrib["d"].strip("MZ").split("ZM") for bars in ET.fromstring(svg).iter(f"{SVG}path"))
    (low, high), (other_low, other_high) = (ends(bar) for bar in (first[0], second[0]))
    assert len(first) == 2
    assert len(second) == 1
    assert other_low == high
    assert (low - high) / (other_low - other_high) == pytest.approx(1.5, rel=0.01)


def ends(bar: str) -> tuple[float, float]:
    """Return the lower and upper end of a bar."""
    start, _, rest = bar.partition("V")
    return float(start.split()[1]), float(rest.partition("H")[0])


def test_stacks_with_different_x_are_refused() -> None:
    with pytest.raises(ValueError, match="same x"):
        stacked_chart("", X, Y, [Series("a", [(1, 1)]), Series("b", [(2, 1)])])


@given(st.lists(st.tuples(numbers, numbers), max_size=70), st.booleans())
@example([(0.0, 1.4e-299), (0.0, -8332061.0)], False)
def test_any_numbers_make_a_chart(points: list[tuple[float, float]], stacked: bool) -> None:
    draw = stacked_chart if stacked else line_chart
    finite = [(at, high) for at, high in points if math.isfinite(at)]
    svg = draw("any", X, Y, [Series("one", finite), Series("two", finite)])
    assert "nan" not in svg
    assert "inf" not in svg
    assert ET.fromstring(svg).tag == f"{SVG}svg"


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9))
def test_ticks_are_few_and_inside(first: float, span: float) -> None:
    ticks = round_ticks(first, first + span)
    assert len(ticks) <= 8
    assert all(first - span * 1e-3 <= tick <= first + span * 1.001 for tick in ticks)


def test_ticks_are_round() -> None:
    assert round_ticks(0, 4028, beyond=True) == [0, 1000, 2000, 3000, 4000, 5000]
    assert round_ticks(0, 99.5) == [0, 20, 40, 60, 80]
    assert round_ticks(0, 0.3, beyond=True) == pytest.approx([0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])


def test_text_stays_text() -> None:
    svg = line_chart(HARM, Axis(HARM), Axis(HARM), [Series(HARM, [(1, 1)])])
    assert texts(svg).count(HARM) == 4
    tags = Tags()
    tags.feed(page(HARM, svg + table((HARM,), ((HARM,),))))
    tags.close()
    assert "script" not in tags.names
    assert {"h1", "svg", "table"} <= tags.names
    assert not tags.open


class Tags(HTMLParser):
    """Collects the names of all tags, and the tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
