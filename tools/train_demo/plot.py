"""The chart of a training: the loss curves of both on each other, and the time of an epoch of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plots import BLUE, GRAY, QUIET, RED, YELLOW, new_figure, note, save, stacked_bars

from train_demo.comparison import Comparison, curve, median_seconds
from train_demo.report import PARTS, median_part

STYLES = {
    "waiting": ("waiting for data", RED),
    "finishing": ("finishing batches", YELLOW),
    "computing": ("the model", BLUE),
}


def draw(folder: Path, comparisons: Sequence[Comparison], title: str) -> bool:
    """Write train_demo.png and train_demo.svg. Return False if there is no matplotlib."""
    try:
        figure = new_figure(11, 4.2)
    except ImportError:
        return False
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    _curves(left.subplots(), comparisons)
    charts = right.subplots(len(comparisons), squeeze=False)[:, 0]
    for axes, comparison in zip(charts, comparisons, strict=True):
        _bars(axes, comparison)
    right.legend(*charts[0].get_legend_handles_labels(), frameon=False, fontsize=9, ncols=3, loc="outside lower center")
    figure.suptitle(title, size=9, color=QUIET)
    save(figure, folder, "train_demo")
    return True


def _curves(axes: Any, comparisons: Sequence[Comparison]) -> None:
    for number, comparison in enumerate(comparisons):
        losses = curve(comparison.pack)
        steps = range(1, len(losses) + 1)
        axes.plot(steps, curve(comparison.raw), color=GRAY, lw=5, alpha=0.8, label=None if number else "raw files")
        axes.plot(steps, losses, color=BLUE, lw=1.2, label=None if number else "pack")
        note(axes, f"width {comparison.width}", steps[-1], losses[-1])
    difference = max(comparison.difference for comparison in comparisons)
    same = "the same loss in every step, to the last bit" if not difference else f"losses differ by {difference:.1g}"
    axes.set_title(same, size=10)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend(frameon=False, fontsize=9)


def _bars(axes: Any, comparison: Comparison) -> None:
    rows = {"pack": comparison.pack, "raw files": comparison.raw}
    parts = {
        label: (colour, [median_part(epochs, part) for epochs in rows.values()])
        for part, (label, colour) in STYLES.items()
        if part in PARTS
    }
    ends = stacked_bars(axes, list(rows), parts)
    for row, (epochs, end) in enumerate(zip(rows.values(), ends, strict=True)):
        faster = f", {comparison.gain:.2f}x as fast" if epochs is comparison.pack else ""
        note(axes, f"{median_seconds(epochs):.2f} s{faster}", end, row, size=9)
    axes.set_xlim(0, 1.35 * max(ends))
    axes.set_title(
        f"seconds of an epoch, width {comparison.width}, {comparison.workers} workers for the raw files", size=10
    )
