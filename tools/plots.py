"""The plotter of all charts: figures of matplotlib in one style, written as PNG and SVG.

matplotlib is imported when a figure is made, because no other part of the programs needs it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GRAY, BLUE, RED, YELLOW = "#9aa5b1", "#1f6feb", "#d1495b", "#edae49"
QUIET = "#57606a"


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, with a size in inches."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "segpack"  # the same bytes for the same data
    return Figure(figsize=(width, height), layout="constrained")


def bars(axes: Any, names: Sequence[str], ranges: Sequence[Sequence[float]], colours: Sequence[str]) -> None:
    """Draw a horizontal bar for each name: the median is its length, the range its whisker."""
    medians = [statistics.median(numbers) for numbers in ranges]
    whiskers = [
        [median - min(numbers) for median, numbers in zip(medians, ranges, strict=True)],
        [max(numbers) - median for median, numbers in zip(medians, ranges, strict=True)],
    ]
    axes.barh(names, medians, xerr=whiskers, color=colours, error_kw={"lw": 1, "capsize": 2})
    for row, (median, numbers) in enumerate(zip(medians, ranges, strict=True)):
        note(axes, f"{median:.2g}", max(numbers), row)


def stacked_bars(axes: Any, names: Sequence[str], parts: Mapping[str, tuple[str, Sequence[float]]]) -> list[float]:
    """Draw a horizontal bar of several parts for each name, and return their ends. A part has a colour and lengths."""
    ends = [0.0] * len(names)
    for label, (colour, lengths) in parts.items():
        axes.barh(list(names), lengths, left=ends, color=colour, label=label, height=0.66)
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    return ends


def note(axes: Any, text: str, x: float, y: float, size: int = 8) -> None:
    """Write a text to the right of a point."""
    axes.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", size=size)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write NAME.png and NAME.svg. The SVG has no date, so the same data give the same bytes."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=130)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
