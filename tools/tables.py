"""The writer of all text tables: aligned columns for a terminal, and Markdown for a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence


def line(cells: Sequence[object], widths: Sequence[int]) -> str:
    """Return one row for a terminal. A cell with a negative width is flush left, the others are flush right."""
    texts = map(str, cells)
    return " ".join(
        text.ljust(-width) if width < 0 else text.rjust(width) for text, width in zip(texts, widths, strict=True)
    ).rstrip()


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row, with columns as wide as needed. The first column is flush left."""
    widths = [max(map(len, column)) + 1 for column in zip(*rows, strict=True)]
    for row in rows:
        yield line(row, [-widths[0], *widths[1:]])


def markdown(rows: Sequence[Sequence[str]], padded: bool = True) -> Iterator[str]:
    """Yield the lines of a Markdown table whose first row is its head."""
    widths = [max(map(len, column)) if padded else 0 for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * max(width + 2, 3) for width in widths) + "|"


def spread(numbers: Sequence[float], digits: str = ".0f") -> str:
    """Return the median, and in brackets the least and the greatest number."""
    median, least, most = (
        format(number, digits).rstrip(".") for number in (statistics.median(numbers), min(numbers), max(numbers))
    )
    return f"{median} ({least} to {most})"
