"""Charts as SVG: text that needs no library, no script and no network, on a light ground or a dark one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import cycle, pairwise

WIDTH, HEIGHT = 720, 300
"""A chart's width; the height of what is between its axes."""
LEFT, RIGHT, TOP, BOTTOM = 68, 20, 26, 46
TITLE, KEY, LETTER = 38, 22, 6.6
"""Heights of the title and of a line of the key; about how wide a letter is."""
MARKED, LEAST_STEP = 60, 1e-290
"""A line of more points goes without marks; numbers that lie closer are the same."""
COLOURS = ("#2f74d0", "#e07b1f", "#2a9d74", "#c8456b", "#8a6bd1", "#a08a2e", "#3aa5b8")
REFERENCE = "#8792a0"
STYLE = """
.chart{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#5b6673}
.chart .ground{fill:#fff}.chart .title{font-size:15px;font-weight:600;fill:#1c2530}.chart .name{fill:#333d49}
.chart .grid{stroke:#e6e9ee}.chart .axis{stroke:#a5aebb}.chart .mark{stroke:#fff;stroke-width:1.5}
@media (prefers-color-scheme:dark){
.chart{fill:#9aa6b5}.chart .ground{fill:#14181f}.chart .title{fill:#eef2f7}.chart .name{fill:#cbd4df}
.chart .grid{stroke:#262d38}.chart .axis{stroke:#566273}.chart .mark{stroke:#14181f}}
"""
Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """What is drawn in one colour. Where a number is not finite, a line has a gap and a stack has nothing."""

    name: str
    points: Sequence[Point]
    whiskers: Sequence[Point] = ()
    """The least and the most of each point, where that is known."""
    dashed: bool = False
    """A line without marks: what others are held against."""


@dataclass(frozen=True)
class Axis:
    """What an axis says. `ticks`: where it has numbers, by default at round ones. `most`: how far it goes at least."""

    label: str
    ticks: Sequence[float] = ()
    most: float | None = None
    doubling: bool = False
    """Twice as much is the same step anywhere: for 1, 2, 4, 8."""


def line_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Lines from point to point, which have marks, and tell their numbers to the mouse, where there are not many."""
    highest = [high for one in series for _, high in (*one.points, *one.whiskers)]
    frame = _Frame.around(x, y, [at for one in series for at, _ in one.points], highest)
    drawn = [draw(frame, *each) for draw in (_whiskers, _line) for each in _coloured(series)]
    return _chart(title, frame, series, drawn)


def stacked_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Bars of what adds up, over the x of the first series, which all have; with many points they are areas."""
    places = [at for at, _ in series[0].points] if series else []
    if any([at for at, _ in one.points] != places for one in series):
        raise ValueError("what is stacked has the same x throughout")
    heights = [[max(0.0, high) if math.isfinite(high) else 0.0 for _, high in one.points] for one in series]
    edges = _edges(places)
    x = x if len(places) > 1 else replace(x, ticks=places)
    frame = _Frame.around(x, y, edges, [sum(column) for column in zip(*heights, strict=True)])
    below = [0.0] * len(places)
    drawn = []
    for (one, colour), height in zip(_coloured(series), heights, strict=True):
        above = [low + more for low, more in zip(below, height, strict=True)]
        drawn.append(f'<path fill="{colour}" d="{_bars(frame, edges, below, above)}">{_tip(one.name)}</path>')
        below = above
    return _chart(title, frame, series, drawn)


@dataclass(frozen=True)
class _Frame:
    """What is between the axes: which numbers lie at its sides, and where a number is, in pixels."""

    x: Axis
    y: Axis
    first: float
    last: float
    top: float
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    filled: bool

    @classmethod
    def around(cls, x: Axis, y: Axis, places: Sequence[float], heights: Sequence[float]) -> _Frame:
        """The least frame that holds all of these; heights begin at zero, or they would mislead."""
        places = [at for at in (*places, *x.ticks) if math.isfinite(at) and (at > 0 or not x.doubling)] or [1.0]
        first, last = min(places), max(*places, x.most or min(places))
        top = max([high for high in (*heights, y.most or 0.0) if math.isfinite(high)], default=0.0)
        y_ticks = y.ticks or round_ticks(0.0, top if top > 0 else 1.0, beyond=True)
        x_ticks = x.ticks or (_doublings(first, last) if x.doubling else round_ticks(first, last, 8))
        return cls(x, y, first, last, max(top, *y_ticks), x_ticks, y_ticks, bool(heights))

    def across(self, value: float) -> float:
        first, last = (math.log2(one) if self.x.doubling else one for one in (self.first, self.last))
        part = ((math.log2(value) if self.x.doubling else value) - first) / (last - first) if last > first else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return TOP + (1 - value / self.top) * HEIGHT


def round_ticks(first: float, last: float, most: int = 6, beyond: bool = False) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart: between the two, or from `first` to just beyond `last`."""
    least = (last - first) / most
    if not least > LEAST_STEP:
        return [first]
    size = 10.0 ** math.floor(math.log10(least))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= least * (1 - 1e-9))
    end = math.ceil(last / step - 1e-9) if beyond else math.floor(last / step + 1e-9)
    return [number * step for number in range(math.ceil(first / step - 1e-9), end + 1)]


def _doublings(first: float, last: float) -> list[float]:
    """Powers of two between two numbers, every so many of them; the first number where there is none."""
    powers = range(math.ceil(math.log2(first)), math.floor(math.log2(last)) + 1)
    return [2.0**power for power in powers[:: max(1, len(powers) // 8)]] or [first]


def _chart(title: str, frame: _Frame, series: Sequence[Series], drawn: Sequence[str]) -> str:
    names = list(_names([one.name for one in series]))
    above = TITLE + KEY * (1 + max((line for line, _ in names), default=-1))
    height = above + TOP + HEIGHT + BOTTOM
    keys = [_key(*where, *each) for where, each in zip(names, _coloured(series), strict=True)]
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">{_tip(title)}<style>{STYLE}</style>'
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'
        f'<text class="title" x="{RIGHT}" y="27">{escape(title)}</text>{"".join(keys)}'
        f'<g transform="translate(0 {above})">{"".join(_grid(frame))}{"".join(drawn)}{"".join(_axis(frame))}</g>'
        "</svg>\n"
    )


def _grid(frame: _Frame) -> Iterator[str]:
    numbers = _numbers(frame.y_ticks)
    for value, text in zip(frame.y_ticks, numbers, strict=True):
        line = f"{frame.up(value):.1f}"
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{line}" y2="{line}"/>'
        yield f'<text x="{LEFT - 9}" y="{line}" dy=".33em" text-anchor="end">{text}</text>'
    yield f'<text x="{RIGHT}" y="{TOP - 14}">{escape(frame.y.label)}</text>'


def _axis(frame: _Frame) -> Iterator[str]:
    foot = TOP + HEIGHT
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{foot}" y2="{foot}"/>'
    for value, text in zip(frame.x_ticks, _numbers(frame.x_ticks), strict=True):
        place = f"{frame.across(value):.1f}"
        yield f'<line class="axis" x1="{place}" x2="{place}" y1="{foot}" y2="{foot + 4}"/>'
        yield f'<text x="{place}" y="{foot + 18}" text-anchor="middle">{text}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    if not frame.filled:
        yield f'<text x="{middle}" y="{TOP + HEIGHT / 2}" text-anchor="middle">nothing to show</text>'
    yield f'<text x="{middle}" y="{foot + 37}" text-anchor="middle">{escape(frame.x.label)}</text>'


def _line(frame: _Frame, one: Series, colour: str) -> str:
    places = [(frame.across(at), frame.up(high)) if math.isfinite(high) else None for at, high in one.points]
    path = "".join(
        f"{'L' if number and places[number - 1] else 'M'}{place[0]:.1f} {place[1]:.1f}"
        for number, place in enumerate(places)
        if place
    )
    dashes = ' stroke-dasharray="6 4"' if one.dashed else ""
    parts = [f'<path fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dashes} d="{path}"/>']
    for place, (at, high) in zip(places, one.points, strict=True):
        if place and len(places) <= MARKED and not one.dashed:
            tip = _tip(f"{one.name}: {high:,.6g} at {at:,.6g}")
            mark = f'<circle class="mark" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="4" fill="{colour}">{tip}</circle>'
            parts.append(mark)
    return "".join(parts)


def _whiskers(frame: _Frame, one: Series, colour: str) -> str:
    """They lie below all lines."""
    ends = "".join(
        f"M{frame.across(at):.1f} {frame.up(low):.1f}V{frame.up(high):.1f}"
        for (at, _), (low, high) in zip(one.points, one.whiskers, strict=False)
        if math.isfinite(low) and math.isfinite(high)
    )
    return f'<path stroke="{colour}" stroke-width="4" stroke-linecap="round" opacity=".3" d="{ends}"/>' if ends else ""


def _edges(places: Sequence[float]) -> list[float]:
    """Where bars begin and end: halfway to their neighbours."""
    if len(places) < 2:
        return [edge for at in places for edge in (at - 0.5, at + 0.5)]
    middles = [(one + other) / 2 for one, other in pairwise(places)]
    return [2 * places[0] - middles[0], *middles, 2 * places[-1] - middles[-1]]


def _bars(frame: _Frame, edges: Sequence[float], below: Sequence[float], above: Sequence[float]) -> str:
    """Bars have a little room between them where there are few."""
    sides = [frame.across(edge) for edge in edges]
    room = 1.0 if len(below) <= MARKED else 0.0
    return "".join(
        f"M{left + room:.1f} {frame.up(low):.1f}V{frame.up(high):.1f}H{right - room:.1f}V{frame.up(low):.1f}Z"
        for left, right, low, high in zip(sides, sides[1:], below, above, strict=False)
        if high > low
    )


def _names(names: Sequence[str]) -> Iterator[tuple[int, float]]:
    """The line of the key and the place in it that each name has."""
    line, place = 0, float(RIGHT)
    for name in names:
        width = 46 + LETTER * len(name)
        if place + width > WIDTH and place > RIGHT:
            line, place = line + 1, float(RIGHT)
        yield line, place
        place += width


def _key(line: int, place: float, one: Series, colour: str) -> str:
    height = TITLE + KEY * line + 8
    dashes = ' stroke-dasharray="6 4"' if one.dashed else ""
    return (
        f'<line x1="{place:.0f}" x2="{place + 18:.0f}" y1="{height}" y2="{height}" stroke="{colour}" stroke-width="4"'
        f'{dashes}/><text class="name" x="{place + 25:.0f}" y="{height}" dy=".33em">{escape(one.name)}</text>'
    )


def _numbers(values: Sequence[float]) -> list[str]:
    """As short as they can be, with equally many digits behind the point."""
    digits = next((many for many in range(10) if all(_same(round(value, many), value) for value in values)), 10)
    return [f"{value:,.{digits}f}" for value in values]


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def _coloured(series: Sequence[Series]) -> Iterator[tuple[Series, str]]:
    colours = cycle(COLOURS)
    for one in series:
        yield one, REFERENCE if one.dashed else next(colours)


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"
