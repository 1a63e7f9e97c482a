"""`packer inspect`: everything that is known of one row of a pack."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.page import show_page
from packer.cli.text_table import text_table
from packer.cli.values import FolderType, shape_text
from packer.errors import UsageError, first_of
from readers.contract.errors import DamagedError
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import size_text

if TYPE_CHECKING:
    from packer.packs.inspect_row import FieldOfRow, InspectedRow
    from readers.contract.place import Place

MOST_CLASSES = 20


@click.command("inspect")
@click.argument("out", type=FolderType())
@click.argument("key", required=False)
@click.option("--split", help="Only the row of this split. Default: of every split that has one.")
@click.option("--keys", "lists_keys", is_flag=True, help="Print the keys of all rows, one a line, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def inspect_command(out: Path, key: str | None, split: str | None, lists_keys: bool, as_json: bool) -> None:
    """Show the row of OUT with this KEY: where it is stored, which files it came from, what was done
    to them, its classes by pixels, and whether its bytes still have their checksum. Exit 4 if not.

    \b
    Example:
      packer inspect out/ street_004
      packer inspect out/ --keys --split val | head
    """
    if lists_keys:
        if key is not None or as_json:
            raise UsageError("--keys: lists the keys of rows as text; leave KEY and --json out")
        with loading():
            from packer.packs.list_keys import keys_of_pack
        for some in keys_of_pack(out, split):
            show(join_lines(some))
        return
    with loading():
        from packer.packs.inspect_row import inspect_rows
    if key is None:
        raise UsageError(f"KEY: is missing; packer inspect {out} --keys lists all keys")
    rows = inspect_rows(out, key, split)
    if as_json:
        show(json.dumps(list(map(_json, rows)), indent=1, ensure_ascii=False))
    else:
        for number, row in enumerate(rows):
            show_page(["", *_lines(row)] if number else _lines(row))
    damaged = [field.field.name for row in rows for field in row.fields if not field.whole]
    if damaged:
        raise DamagedError(f"{out}: {key!r}: {', '.join(damaged)}: damaged; find out what else is: packer verify {out}")


def _json(row: InspectedRow) -> dict[str, Any]:
    fields = [
        {
            "name": field.field.name,
            "kind": field.field.kind,
            "dtype": field.field.dtype,
            "shape": list(field.shape),
            "encoding": field.field.encoding,
            "file": str(field.file),
            "start": field.start,
            "stop": field.stop,
            "crc32": field.crc32,
            "whole": field.whole,
            "sources": list(field.sources),
            "identity": field.identity,
            "statistics": field.statistics.to_json(),
        }
        for field in row.fields
    ]
    return {**asdict(row), "fields": fields, "place": None if row.place is None else _place_json(row.place)}


def _place_json(place: Place) -> dict[str, Any]:
    facts = {"kind": place.kind, "crs": place.crs, "nodata": place.no_data}
    return facts | {"spacing": place.spacing, "transform": place.transform}


def _lines(row: InspectedRow) -> Iterator[str]:
    yield f"{row.split}/{row.key}"
    yield f"row         {row.row} of {row.split}, row {row.row_of_shard} of the shard {row.shard}"
    yield f"generation  {row.generation}"
    yield f"size        {size_text(row.size)}"
    for number, words in enumerate(row.placement):
        yield f"{'' if number else 'geometry':<12}{words}"
    if row.note:
        yield f"note        {row.note}"
    if row.place is not None:
        yield from _place_lines(row.place)
    for field in row.fields:
        yield from _field_lines(field)


def _place_lines(place: Place) -> Iterator[str]:
    """Describe where the pixels of a row are."""
    unit = " mm" if place.kind == "nifti" else ""
    first = ", ".join(f"{number:.10g}" for number in place.at(*[0] * len(place.spacing)))
    yield f"place       {place.crs or place.kind}: the first pixel at ({first}){unit}"
    yield f"{'':<12}spacing {' x '.join(f'{step:.6g}' for step in place.spacing)}{unit}"
    if place.no_data:
        yield f"{'':<12}{place.no_data} means no data"


def _field_lines(field: FieldOfRow) -> Iterator[str]:
    checksum = "as in its receipt" if field.whole else "NOT the one in its receipt: damaged"
    yield f"{field.field.name}"
    encoding = f", as {field.field.encoding_text}" if field.field.is_encoded else ""
    yield f"  stored    {field.field.kind}, {field.field.dtype} {shape_text(field.shape)}{encoding}"
    yield f"  file      {field.file}, bytes {field.start:,} to {field.stop:,}"
    yield f"  CRC-32    {field.crc32:08x}, {checksum}"
    for number, source in enumerate(field.sources or ("not known: the pack has no stamps of this shard",)):
        yield f"  {'' if number else 'from':<10}{source}"
    if field.identity:
        yield f"  read as   {field.identity}"
    yield from (f"  {line}" for line in _class_lines(field))


def _class_lines(field: FieldOfRow) -> Iterator[str]:
    statistics = field.statistics
    if not isinstance(statistics, ClassStatistics):
        return
    pixels = max(1, math.prod(field.shape[-len(field.field.sides) :]))
    cells = [[name, f"{count:,}", f"{100 * count / pixels:.3f} %"] for name, count in field.classes]
    if statistics.ignored:
        cells.append(["(in no class)", f"{statistics.ignored:,}", f"{100 * statistics.ignored / pixels:.3f} %"])
    lines = list(text_table([["class", "pixels", "share"], *cells])) if cells else []
    yield from first_of(lines, MOST_CLASSES, "classes")
