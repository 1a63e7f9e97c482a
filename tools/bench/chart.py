"""The plot: which part of the copy loop's rate each contender reaches, as PNG and SVG."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.contest import Row
from bench.table import COPY

PLAIN, OURS = "#9aa5b1", "#1f6feb"


def draw(folder: Path, rows: Sequence[Row]) -> None:
    """Write peers.png and peers.svg. Bars are medians, whiskers go from the least round to the best."""
    from matplotlib.figure import Figure

    shown = sorted(
        (row for row in rows if not row.trouble and row.name != COPY), key=lambda row: statistics.median(row.of_copy)
    )
    names = [row.name for row in shown]
    middles = [statistics.median(row.of_copy) for row in shown]
    whiskers = [
        [middle - min(row.of_copy) for middle, row in zip(middles, shown, strict=True)],
        [max(row.of_copy) - middle for middle, row in zip(middles, shown, strict=True)],
    ]
    figure = Figure(figsize=(9, 0.34 * len(shown) + 1.4), layout="constrained")
    axes = figure.subplots()
    colours = [OURS if name.startswith("loader") else PLAIN for name in names]
    axes.barh(names, middles, xerr=whiskers, color=colours, error_kw={"lw": 1, "capsize": 2})
    for place, (middle, row) in enumerate(zip(middles, shown, strict=True)):
        axes.annotate(
            f"{middle:.2g}", (max(row.of_copy), place), xytext=(5, 0), textcoords="offset points", va="center", size=8
        )
    axes.axvline(1, color="black", lw=1)
    axes.set_xlim(0, 1.1 * max(1, *(max(row.of_copy) for row in shown)))
    axes.set_xlabel("part of the copy loop's rate, in the same round (1: as fast as memory is copied)")
    axes.set_title("512x512x3 + label, batches of 16, shuffled, page cache warm", size=10)
    axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "peers.png", dpi=130)
    figure.savefig(folder / "peers.svg", metadata={"Date": None})
