"""The picture: the loss curves of both on each other, and what an epoch of each takes, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train_demo.duel import Duel, curve, median_seconds
from train_demo.table import PARTS, middle

COLOURS = {"waiting": "#d1495b", "finishing": "#edae49", "computing": "#1f6feb"}
RAW, PACK = "#9aa5b1", "#1f6feb"
MEANS = {"waiting": "waiting for data", "finishing": "finishing batches", "computing": "the model"}


def draw(folder: Path, duels: Sequence[Duel], title: str) -> list[Path]:
    """Write train_demo.png and train_demo.svg; nothing where there is no matplotlib."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        return []
    rcParams["svg.hashsalt"] = "segpack"  # the same bytes for the same figures
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    _curves(left.subplots(), duels)
    bars = right.subplots(len(duels), squeeze=False)[:, 0]
    for axes, duel in zip(bars, duels, strict=True):
        _bars(axes, duel)
    right.legend(*bars[0].get_legend_handles_labels(), frameon=False, fontsize=9, ncols=3, loc="outside lower center")
    figure.suptitle(title, size=9, color="#57606a")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"train_demo.{suffix}" for suffix in ("png", "svg")]
    figure.savefig(paths[0], dpi=130)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _curves(axes: Any, duels: Sequence[Duel]) -> None:
    for number, duel in enumerate(duels):
        steps, name = range(1, len(curve(duel.raw)) + 1), f"width {duel.width}"
        axes.plot(steps, curve(duel.raw), color=RAW, lw=5, alpha=0.8, label="raw files" if not number else None)
        axes.plot(steps, curve(duel.pack), color=PACK, lw=1.2, label="pack" if not number else None)
        last = curve(duel.pack)[-1]
        axes.annotate(name, (steps[-1], last), xytext=(5, 0), textcoords="offset points", va="center", size=8)
    difference = max(duel.difference for duel in duels)
    same = "the same loss in every step, to the last bit" if not difference else f"losses differ by {difference:.1g}"
    axes.set_title(same, size=10)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend(frameon=False, fontsize=9)


def _bars(axes: Any, duel: Duel) -> None:
    rows = {"pack": duel.pack, "raw files": duel.raw}
    ends = [0.0, 0.0]
    for part in PARTS:
        wide = [middle(epochs, part) for epochs in rows.values()]
        axes.barh(list(rows), wide, left=ends, color=COLOURS[part], label=MEANS[part], height=0.66)
        ends = [end + more for end, more in zip(ends, wide, strict=True)]
    for place, (epochs, end) in enumerate(zip(rows.values(), ends, strict=True)):
        told = f"{median_seconds(epochs):.2f} s" + (f", {duel.gain:.2f}x as fast" if epochs is duel.pack else "")
        axes.annotate(told, (end, place), xytext=(5, 0), textcoords="offset points", va="center", size=9)
    axes.set_xlim(0, 1.35 * max(ends))
    axes.set_title(f"seconds of an epoch, width {duel.width}, {duel.workers} workers for the raw files", size=10)
