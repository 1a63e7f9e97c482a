"""The table and the chart of bench.reading_peers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from plots import BLUE, GRAY, bars, new_figure, save
from scenes.squares import SIDE
from tables import markdown, spread

from bench.rounds import ReadResult

COPY, OURS = "copy loop", "loader, npy"
HEAD = (
    "",
    "pairs/s",
    "of the copy loop",
    "loader is faster by",
    "goal",
    "faster",
    "CPU ms/pair",
    "of the loader's",
    "GB/s per core",
)
PAIR_BYTES = 4 * SIDE**2
RATIO = "#.3g"


def lines(results: Sequence[ReadResult]) -> Iterator[str]:
    """Yield the table in Markdown, and below it why a library was not measured."""
    yield from markdown([HEAD, *(cells(result) for result in results if not result.trouble)])
    for result in results:
        if result.trouble:
            yield f"\n{result.name}: not measured: {' '.join(result.trouble.split())[:300]}"


def cells(result: ReadResult) -> tuple[str, ...]:
    rates = spread(result.rates)
    milliseconds = statistics.median(pace.cpu for pace in result.paces)
    cpu, per_core = f"{milliseconds:.2f}", f"{PAIR_BYTES / milliseconds / 1e6:.2g}"
    if result.name.startswith(COPY):
        return result.name, rates, "1", "", "", "", cpu, spread(result.costlier, RATIO), per_core
    of_copy = spread(result.of_copy, RATIO)
    if result.name == OURS:
        return result.name, rates, of_copy, "1", "", "", cpu, "1", per_core
    times = statistics.median(result.behind)
    goal = f"{result.goal:g}{'' if times >= result.goal else ', missed'}" if result.goal else ""
    faster = "loader" if times > 1 else result.name
    behind, costlier = spread(result.behind, RATIO), spread(result.costlier, RATIO)
    return result.name, rates, of_copy, behind, goal, faster, cpu, costlier, per_core


def draw(folder: Path, results: Sequence[ReadResult]) -> None:
    """Write peers.png and peers.svg: the rate of each candidate as a part of the copy loop's."""
    shown = sorted(
        (result for result in results if not result.trouble and not result.name.startswith(COPY)),
        key=lambda result: statistics.median(result.of_copy),
    )
    figure = new_figure(9, 0.34 * len(shown) + 1.4)
    axes = figure.subplots()
    colours = [BLUE if result.name.startswith("loader") else GRAY for result in shown]
    bars(axes, [result.name for result in shown], [result.of_copy for result in shown], colours)
    axes.axvline(1, color="black", lw=1)
    axes.set_xlim(0, 1.1 * max(1, *(max(result.of_copy) for result in shown)))
    axes.set_xlabel("part of the copy loop's rate, in the same round (1: as fast as memory is copied)")
    axes.set_title("512x512x3 + label, batches of 16, shuffled, page cache warm", size=10)
    save(figure, folder, "peers")
