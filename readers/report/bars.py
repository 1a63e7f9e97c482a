"""Bars from left to right, one for each name, as SVG: for classes and other names that are too long for an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from readers.report.chart import COLOURS, STYLE

LINE, NAME, VALUE, WIDTH = 24, 190, 110, 720
"""The height of a bar with its gap; the widths of names, of values, and of all."""
LETTERS = 26
"""Longer names lose their end; the whole name appears under the mouse."""
SPREAD = 200
"""Numbers that differ by this factor need a logarithmic scale: else the small ones have no bar."""


@dataclass(frozen=True)
class Bar:
    """A name, a number of at least 0, and the number as a text; a colour as `#rrggbb`."""

    name: str
    value: float
    text: str
    colour: str = COLOURS[0]


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return a chart of bars. If its numbers are far apart, lengths are logarithms, and the title says so."""
    above = [bar.value for bar in bars if bar.value > 0]
    log = len(above) > 1 and max(above) > SPREAD * min(above)
    height = 42 + LINE * len(bars) + 8
    drawn = [_bar(bar, 42 + LINE * line, above, log) for line, bar in enumerate(bars)]
    title = f"{title}, logarithmic" if log else title
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img"><title>{escape(title)}</title><style>{STYLE}</style>'
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'
        f'<text class="title" x="20" y="27">{escape(title)}</text>{"".join(drawn)}</svg>\n'
    )


def _bar(bar: Bar, top: int, above: Sequence[float], log: bool) -> str:
    most = WIDTH - NAME - VALUE - 20
    length = max(1.0, _part(bar.value, above, log) * most) if bar.value > 0 else 0.0
    name = bar.name if len(bar.name) <= LETTERS else f"{bar.name[: LETTERS - 1]}…"
    middle = top + LINE / 2
    return (
        f'<g><title>{escape(bar.name)}: {escape(bar.text)}</title><text class="name" x="{NAME - 8}" y="{middle}" '
        f'dy=".33em" text-anchor="end">{escape(name)}</text><rect x="{NAME}" y="{top + 4}" width="{length:.1f}" '
        f'height="{LINE - 8}" rx="2" fill="{bar.colour}" stroke="#8792a0" stroke-width=".5"/>'
        f'<text x="{NAME + length + 7:.1f}" y="{middle}" dy=".33em">{escape(bar.text)}</text></g>'
    )


def _part(value: float, above: Sequence[float], log: bool) -> float:
    """Return the length of a bar from 0 to 1. The smallest of a logarithmic scale still has a twentieth."""
    most, least = max(above), min(above)
    if not log:
        return value / most
    return 0.05 + 0.95 * math.log(value / least) / math.log(most / least)
