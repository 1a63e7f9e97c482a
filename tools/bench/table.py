"""The table: medians and spread of each contender, and how many times as fast our loader is."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench.contest import Row

COPY, OURS = "copy loop, all cores", "loader, npy"
HEAD = ("", "pairs/s", "of the copy loop", "loader is faster by", "goal", "faster", "CPU ms/pair", "of the loader's")


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """In Markdown, whose columns line up."""
    table = [HEAD, *(cells(row) for row in rows if not row.trouble)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEAD))]
    for number, line in enumerate(table):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    for row in rows:
        if row.trouble:
            yield f"\n{row.name}: not measured: {' '.join(row.trouble.split())[:300]}"


def cells(row: Row) -> tuple[str, ...]:
    rates = f"{statistics.median(row.rates):.0f} ({min(row.rates):.0f} to {max(row.rates):.0f})"
    cpu = f"{statistics.median(pace.cpu for pace in row.paces):.2f}"
    if row.name == COPY:
        return row.name, rates, "1", "", "", "", cpu, spread(row.costlier)
    if row.name == OURS:
        return row.name, rates, spread(row.of_copy), "1", "", "", cpu, "1"
    times = statistics.median(row.behind)
    goal = f"{row.goal:g}{'' if times >= row.goal else ', missed'}" if row.goal else ""
    faster = "loader" if times > 1 else row.name
    return row.name, rates, spread(row.of_copy), spread(row.behind), goal, faster, cpu, spread(row.costlier)


def spread(ratios: Sequence[float]) -> str:
    """Median, least and most, in three digits."""
    median, least, most = (
        f"{number:#.3g}".rstrip(".") for number in (statistics.median(ratios), min(ratios), max(ratios))
    )
    return f"{median} ({least} to {most})"
