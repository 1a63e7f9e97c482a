"""Charts as SVG text: without a library, script or network, for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import cycle, pairwise

from readers.report.axes import BOTTOM, HEIGHT, RIGHT, TOP, WIDTH, Axis, Frame, grid, x_axis

TITLE, KEY, LETTER = 38, 22, 6.6
"""Heights of the title and of a line of the key; the approximate width of a letter."""
MARKED = 60
"""A line of more points has no marks."""
COLOURS = ("#2f74d0", "#e07b1f", "#2a9d74", "#c8456b", "#8a6bd1", "#a08a2e", "#3aa5b8")
STYLE = """
.chart{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#5b6673}
.chart .ground{fill:#fff}.chart .title{font-size:15px;font-weight:600;fill:#1c2530}.chart .name{fill:#333d49}
.chart .grid{stroke:#e6e9ee}.chart .axis{stroke:#a5aebb}.chart .mark{stroke:#fff;stroke-width:1.5}
@media screen and (prefers-color-scheme:dark){
.chart{fill:#9aa6b5}.chart .ground{fill:#14181f}.chart .title{fill:#eef2f7}.chart .name{fill:#cbd4df}
.chart .grid{stroke:#262d38}.chart .axis{stroke:#566273}.chart .mark{stroke:#14181f}}
"""
ChartPoint = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """Points that are drawn in one colour. At a number that is not finite, a line has a gap and a stack has nothing."""

    name: str
    points: Sequence[ChartPoint]


def line_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return a chart of lines. If a line has few points, each has a mark that shows its numbers under the mouse."""
    positions, heights = ([point[axis] for line in series for point in line.points] for axis in (0, 1))
    frame = Frame.around(x, y, positions, heights)
    return _chart(title, frame, series, [_line(frame, *coloured) for coloured in _coloured(series)])


def stacked_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return a chart of stacked bars; with many points they are areas. All series must have the same x."""
    positions = [at for at, _ in series[0].points] if series else []
    if any([at for at, _ in layer.points] != positions for layer in series):
        raise ValueError("the series of a stacked chart must have the same x")
    heights = [[max(0.0, high) if math.isfinite(high) else 0.0 for _, high in layer.points] for layer in series]
    edges = [min(max(edge, _or(x.least, edge)), _or(x.most, edge)) for edge in _edges(positions)]
    x = x if len(positions) > 1 else replace(x, ticks=positions)
    frame = Frame.around(x, y, edges, [sum(column) for column in zip(*heights, strict=True)])
    below = [0.0] * len(positions)
    drawn = []
    for (layer, colour), height in zip(_coloured(series), heights, strict=True):
        above = [low + more for low, more in zip(below, height, strict=True)]
        drawn.append(f'<path fill="{colour}" d="{_bars(frame, edges, below, above)}">{_tip(layer.name)}</path>')
        below = above
    return _chart(title, frame, series, drawn)


def _chart(title: str, frame: Frame, series: Sequence[Series], drawn: Sequence[str]) -> str:
    names = list(_names([part.name for part in series]))
    above = TITLE + KEY * (1 + max((line for line, _ in names), default=-1))
    height = above + TOP + HEIGHT + BOTTOM
    keys = [_key(*position, *coloured) for position, coloured in zip(names, _coloured(series), strict=True)]
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">{_tip(title)}<style>{STYLE}</style>'
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'
        f'<text class="title" x="{RIGHT}" y="27">{escape(title)}</text>{"".join(keys)}'
        f'<g transform="translate(0 {above})">{"".join(grid(frame))}{"".join(drawn)}{"".join(x_axis(frame))}</g>'
        "</svg>\n"
    )


def _line(frame: Frame, line: Series, colour: str) -> str:
    points = [(frame.across(at), frame.up(high)) if math.isfinite(high) else None for at, high in line.points]
    path = "".join(
        f"{'L' if index and points[index - 1] else 'M'}{point[0]:.1f} {point[1]:.1f}"
        for index, point in enumerate(points)
        if point
    )
    parts = [f'<path fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round" d="{path}"/>']
    for point, (at, high) in zip(points, line.points, strict=True):
        if point and len(points) <= MARKED:
            tip = _tip(f"{line.name}: {high:,.6g} at {at:,.6g}")
            mark = f'<circle class="mark" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="4" fill="{colour}">{tip}</circle>'
            parts.append(mark)
    return "".join(parts)


def _edges(positions: Sequence[float]) -> list[float]:
    """Return where bars begin and end: halfway to their neighbours."""
    if len(positions) < 2:
        return [edge for at in positions for edge in (at - 0.5, at + 0.5)]
    middles = [(left + right) / 2 for left, right in pairwise(positions)]
    return [2 * positions[0] - middles[0], *middles, 2 * positions[-1] - middles[-1]]


def _or(limit: float | None, value: float) -> float:
    return value if limit is None else limit


def _bars(frame: Frame, edges: Sequence[float], below: Sequence[float], above: Sequence[float]) -> str:
    """Return the bars as a path, with a gap between them if there are few."""
    sides = [frame.across(edge) for edge in edges]
    gap = 1.0 if len(below) <= MARKED else 0.0
    return "".join(
        f"M{left + gap:.1f} {frame.up(low):.1f}V{frame.up(high):.1f}H{right - gap:.1f}V{frame.up(low):.1f}Z"
        for left, right, low, high in zip(sides, sides[1:], below, above, strict=False)
        if high > low
    )


def _names(names: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield for each name its line in the key, and its position in that line."""
    line, left = 0, float(RIGHT)
    for name in names:
        width = 46 + LETTER * len(name)
        if left + width > WIDTH and left > RIGHT:
            line, left = line + 1, float(RIGHT)
        yield line, left
        left += width


def _key(line: int, left: float, part: Series, colour: str) -> str:
    height = TITLE + KEY * line + 8
    return (
        f'<line x1="{left:.0f}" x2="{left + 18:.0f}" y1="{height}" y2="{height}" stroke="{colour}" stroke-width="4"/>'
        f'<text class="name" x="{left + 25:.0f}" y="{height}" dy=".33em">{escape(part.name)}</text>'
    )


def _coloured(series: Sequence[Series]) -> Iterator[tuple[Series, str]]:
    return zip(series, cycle(COLOURS), strict=False)


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"
