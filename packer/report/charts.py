"""The charts of a report that several of its parts use: bars of classes, histograms of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.kinds import CLASSES
from readers.contract.plain_text import one_line
from readers.contract.statistics import ClassStatistics
from readers.report.axes import Axis
from readers.report.bars import Bar, bar_chart
from readers.report.chart import Series, stacked_chart

MOST_BARS = 150
"""The most classes in a chart: it shows the classes with the most pixels."""

FEW = 5
"""An axis of at most this number of pictures has a line for each."""


def class_charts(label: Field, counts: ClassStatistics, rows: int, name: str = "") -> Iterator[str]:
    """Yield the pixels of each class and the pictures with it, of this number of rows. A further field has a `name`."""
    classes = label.classes
    if classes is None:
        return
    alone = label.kind == CLASSES
    pixels = max(1, counts.count if alone else max(counts.areas, default=0))
    best = sorted(range(len(classes)), key=lambda number: -counts.classes[number])[:MOST_BARS]
    more = f" (the {MOST_BARS} most frequent of {len(classes)})" if len(classes) > MOST_BARS else ""
    colours, names = classes.palette.hex, [one_line(class_name) for class_name in classes.names]
    ignored = [Bar("ignored", counts.ignored, share_text(counts.ignored / pixels), "#c9ced6")] if alone else []
    yield bar_chart(
        titled(name, f"Pixels of each class{more}"),
        [Bar(names[n], counts.classes[n], share_text(counts.classes[n] / pixels), colours[n]) for n in best] + ignored,
    )
    shares = [f"{counts.rows[n]:,} ({share_text(counts.rows[n] / max(1, rows))})" for n in best]
    yield bar_chart(
        titled(name, f"Pictures with each class{more}"),
        [Bar(names[n], counts.rows[n], text, colours[n]) for n, text in zip(best, shares, strict=True)],
    )


def titled(name: str, text: str) -> str:
    """Return the title of a chart of a field; the title for the label has no name."""
    return f"{one_line(name)}: {text[0].lower()}{text[1:]}" if name else text


def histogram(title: str, x: Axis, at: Sequence[float], counts: NDArray[Any], y: str = "pictures") -> str:
    """Return a chart of how many pictures have each number."""
    points = list(zip(map(float, at), map(float, counts.tolist()), strict=True))
    most = int(counts.max(initial=0))
    whole = range(most + 1) if 0 < most <= FEW else ()  # there are no half pictures
    return stacked_chart(title, x, Axis(y, ticks=whole), [Series(y, points)])


def share_text(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 0.1 else f"{100 * share:.1f} %"
