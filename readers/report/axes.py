"""Axes of a chart: the range of numbers that it shows, positions in pixels, round ticks, and the grid as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 300
"""The width of a chart; the height of the area between its axes."""
LEFT, RIGHT, TOP, BOTTOM = 68, 20, 26, 46
LEAST_STEP = 1e-290
"""Numbers that are closer than this are treated as equal."""


@dataclass(frozen=True)
class Axis:
    """An axis. `ticks` are the numbers on it, by default round ones. It reaches from `least` to `most` or beyond."""

    label: str
    ticks: Sequence[float] = ()
    most: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class Frame:
    """The area between the axes: the numbers at its edges, and the position of a number in pixels."""

    x: Axis
    y: Axis
    first: float
    last: float
    top: float
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    filled: bool

    @classmethod
    def around(cls, x: Axis, y: Axis, positions: Sequence[float], heights: Sequence[float]) -> Frame:
        """Return the smallest frame with all of these. Heights begin at zero, because other charts mislead."""
        positions = [at for at in (*positions, *x.ticks) if math.isfinite(at)] or [1.0]
        first, last = min(positions), max(positions)
        first, last = min(first, first if x.least is None else x.least), max(last, last if x.most is None else x.most)
        top = max([high for high in (*heights, y.most or 0.0) if math.isfinite(high)], default=0.0)
        y_ticks = y.ticks or round_ticks(0.0, top if top > 0 else 1.0, beyond=True)
        x_ticks = x.ticks or round_ticks(first, last, 8)
        return cls(x, y, first, last, max(top, *y_ticks), x_ticks, y_ticks, bool(heights))

    def across(self, value: float) -> float:
        part = (value - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        """Return the position of a height. A negative one is below the frame, at most by its height."""
        return TOP + (1 - max(value / self.top, -1.0)) * HEIGHT


def round_ticks(first: float, last: float, most: int = 6, beyond: bool = False) -> list[float]:
    """Return round numbers, 1, 2 or 5 times a power of ten apart, from `first` to `last` or just `beyond` it."""
    least = (last - first) / most
    if not least > LEAST_STEP:
        return [first]
    size = 10.0 ** math.floor(math.log10(least))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= least * (1 - 1e-9))
    end = math.ceil(last / step - 1e-9) if beyond else math.floor(last / step + 1e-9)
    return [number * step for number in range(math.ceil(first / step - 1e-9), end + 1)]


def grid(frame: Frame) -> Iterator[str]:
    numbers = _numbers(frame.y_ticks)
    for value, text in zip(frame.y_ticks, numbers, strict=True):
        line = f"{frame.up(value):.1f}"
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{line}" y2="{line}"/>'
        yield f'<text x="{LEFT - 9}" y="{line}" dy=".33em" text-anchor="end">{text}</text>'
    yield f'<text x="{RIGHT}" y="{TOP - 14}">{escape(frame.y.label)}</text>'


def x_axis(frame: Frame) -> Iterator[str]:
    foot = TOP + HEIGHT
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{foot}" y2="{foot}"/>'
    for value, text in zip(frame.x_ticks, _numbers(frame.x_ticks), strict=True):
        position = f"{frame.across(value):.1f}"
        yield f'<line class="axis" x1="{position}" x2="{position}" y1="{foot}" y2="{foot + 4}"/>'
        yield f'<text x="{position}" y="{foot + 18}" text-anchor="middle">{text}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    if not frame.filled:
        yield f'<text x="{middle}" y="{TOP + HEIGHT / 2}" text-anchor="middle">nothing to show</text>'
    yield f'<text x="{middle}" y="{foot + 37}" text-anchor="middle">{escape(frame.x.label)}</text>'


def _numbers(values: Sequence[float]) -> list[str]:
    """Return numbers as texts, with the same number of digits after the point, as few as possible."""
    digits = next((many for many in range(10) if all(_same(round(value, many), value) for value in values)), 10)
    return [f"{value:,.{digits}f}" for value in values]


def _same(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-12)
