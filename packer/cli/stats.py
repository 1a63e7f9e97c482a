"""`packer stats`: what was counted of each field, by split."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.page import show_page
from packer.cli.text_table import text_table
from packer.cli.values import PackType, RanksType
from packer.errors import UsageError, counted, first_of
from readers.contract.kinds import KINDS
from readers.contract.tiles import size_text

if TYPE_CHECKING:
    from packer.packs.stats import FieldStats, SplitStats

MOST_SIZES = 5
MOST_BANDS = 16
"""More bands are in a table."""


@click.command("stats")
@click.argument("out", type=PackType())
@click.option("--percentiles", type=RanksType(), help="Percentiles to read all rows for: 0.5,50,99.5.")
@click.option("--foreground", is_flag=True, help="Count pixels in a class besides the first one.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def stats_command(out: Path | str, percentiles: tuple[float, ...] | None, foreground: bool, as_json: bool) -> None:
    """Show the exact statistics of each split of OUT. They were counted during the build, so no image is read.

    Mean and deviation are of numbers from 0 to 1, or as stored if the field has no range. The weights are for a loss in
    which rare classes count as well. In training they are train.mean, train.std and train.class_weights("median").

    \b
    Example:
      packer stats out/
      packer stats --json out/ | jq '.[0].mean'
    """
    with loading():
        from packer.packs.stats import pack_stats
    if foreground and percentiles is None:
        raise UsageError("--foreground: is for --percentiles; name some, such as --percentiles 0.5,50,99.5")
    stats = pack_stats(out, percentiles or (), foreground)
    if as_json:
        show(json.dumps(list(map(_json, stats)), indent=1, ensure_ascii=False))
    else:
        for number, split in enumerate(stats):
            show_page(["", *_lines(split)] if number else _lines(split))


def _json(stats: SplitStats) -> dict[str, Any]:
    sizes = {size_text(size): count for size, count in stats.sizes.items()}
    return asdict(stats) | {"sizes": sizes}


def _lines(stats: SplitStats) -> list[str]:
    sizes = [f"{count} of {size_text(size)}" for size, count in stats.sizes.items()]
    lines = [f"{stats.split}: {counted(stats.rows, 'row')} ({', '.join(first_of(sizes, MOST_SIZES, 'sizes'))})"]
    for field in stats.fields:
        lines += _field_lines(field, stats.rows)
    return lines


def _band_lines(field: FieldStats) -> Iterator[str]:
    """Mean and deviation of a few bands, in a line each."""
    for name, values in _numbers(field).items():
        if values:
            yield f"{name:<6}" + "  ".join(f"{value:.6f}" for value in values)
    if field.missing:
        yield f"no data  {'  '.join(_shares(field))} of each band, not in mean and std"


def _band_table(field: FieldStats) -> Iterator[str]:
    """A line for each of many bands."""
    numbers = {name: map("{:.6f}".format, values) for name, values in _numbers(field).items()}
    columns: dict[str, Iterable[str]] = {"band": field.bands, **numbers}
    if field.missing:
        columns["no data"] = _shares(field)
    yield from text_table([list(columns), *map(list, zip(*columns.values(), strict=True))])


def _numbers(field: FieldStats) -> dict[str, tuple[float, ...]]:
    """Mean, deviation and percentiles of each band."""
    return {"mean": field.mean, "std": field.std, **{f"p{rank}": values for rank, values in field.percentiles.items()}}


def _shares(field: FieldStats) -> list[str]:
    """The share of pixels of each band that have no data."""
    return [f"{100 * missing / max(1, field.times * field.pixels):.3f} %" for missing in field.missing]


def _field_lines(field: FieldStats, rows: int) -> Iterator[str]:
    """The statistics of a field of a split with this number of rows."""
    some = "" if field.rows == rows else f" in {field.rows} of {counted(rows, 'row')}"
    words = KINDS[field.kind].empty
    times = f" of {field.times} dates" if field.times > 1 else ""
    empty = f", {100 * field.empty / max(1, field.pixels):.3f} % {words}" if words else ""
    yield f"{field.name}: {field.kind}{times}{some}{empty}"
    if len(field.mean) > MOST_BANDS:
        yield from _band_table(field)
    else:
        yield from _band_lines(field)
    if field.classes:
        weightings = list(field.classes[0].weights)
        cells = [
            [str(index), item.name, f"{100 * item.share:.3f} %", str(item.rows)]
            + [f"{item.weights[weighting]:.4g}" for weighting in weightings]
            for index, item in enumerate(field.classes)
        ]
        yield from text_table([["", "class", "pixels", "rows", *weightings], *cells], left=(0, 1))
