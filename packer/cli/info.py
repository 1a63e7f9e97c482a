"""`packer info`: show the contents of a packed data set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.page import show_page
from packer.cli.text_table import text_table
from packer.cli.values import PackType, bytes_text, shape_text
from packer.errors import counted, first_of
from readers.contract.fields import RAW, Field
from readers.contract.kinds import CLASSES, PICTURE, VALUES
from readers.contract.manifest import Manifest, Split
from readers.contract.statistics import ClassStatistics, FieldStatistics

MOST_BANDS = 16
"""The most bands that are named."""


@click.command("info")
@click.argument("out", type=PackType())
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def info_command(out: Path | str, as_json: bool) -> None:
    """Show the format, fields, classes, splits, counts, bytes and recipe of OUT. Reads only the manifest.

    \b
    Example:
      packer info out/
      packer info --json out/ | jq .splits
      packer info s3://bucket/out
    """
    with loading():
        from packer.packs.stored import manifest_at
    manifest = Manifest.load(out) if isinstance(out, Path) else manifest_at(out)
    if as_json:
        show(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False))
    else:
        show_page(_lines(manifest))


def _lines(manifest: Manifest) -> list[str]:
    return [
        f"format      {manifest.storage}, generation {manifest.generation} of {manifest.created}",
        f"bytes       {manifest.bytes:,} ({bytes_text(manifest.bytes)}) in {counted(manifest.shards, 'shard')}",
        f"rows        {manifest.rows}",
        *chain.from_iterable(map(_split_lines, manifest.splits)),
        "fields",
        *(f"  {line}" for line in text_table(list(map(_field_cells, manifest.fields)), left=range(6))),
        *chain.from_iterable(_class_lines(field, manifest.statistics[field.name]) for field in manifest.fields),
        "recipe",
        *chain.from_iterable(_recipe_lines(key, value) for key, value in manifest.recipe.items()),
    ]


def _field_cells(field: Field) -> list[str]:
    """The cells of a field in the table of fields. The last one has what only some fields have."""
    notes = first_of(field.bands or (), MOST_BANDS, "bands") if field.kind == PICTURE else []
    notes += [f"{field.times} dates"] if field.times > 1 else []
    notes += [f"{len(field.classes)} classes"] if field.classes is not None else []
    notes += [f"missing {field.fill}"] if field.kind == VALUES or field.no_data else []
    notes += [f"padding {field.fill}"] if field.kind == PICTURE and field.fill and not field.no_data else []
    notes += [] if field.encoding == RAW else [field.encoding_text]
    notes += ["optional"] if field.optional else []
    return [field.name, field.kind, field.form, field.dtype, shape_text(field.shape), ", ".join(notes)]


def _class_lines(field: Field, statistics: FieldStatistics) -> Iterator[str]:
    """The classes of a field. The classes of `classes` share its pixels; others overlap, so their rows are counted."""
    if field.classes is None or not isinstance(statistics, ClassStatistics):
        return
    alone = field.kind == CLASSES
    what = f"share of the {field.name} pixels" if alone else f"rows of {field.name} in which each occurs"
    yield f"classes     {len(field.classes)}, {what}"
    for number, entry in enumerate(field.classes.classes):
        count = _share(statistics.classes[number], statistics.count) if alone else f"{statistics.rows[number]:>9}"
        yield f"  {number:<4}{_swatch(entry.colour)} {count}  {entry.name}"
    if alone:
        share = _share(statistics.ignored, statistics.count)
        yield f"  {'':<12} {share}  (ignored; index {field.classes.ignore_index})"


def _recipe_lines(key: str, value: object) -> Iterator[str]:
    """An option that decides the bytes. The options of a field are on a line of its own."""
    rules = value if isinstance(value, list) and key == "fields" else None
    if rules is None or not all(isinstance(rule, dict) and isinstance(rule.get("field"), dict) for rule in rules):
        yield f"  {key:<16}{_value_text(key, value)}"
        return
    for rule in rules:
        options = {**{key: value for key, value in rule.items() if not isinstance(value, dict)}, **_options(rule)}
        words = [f"{name} {option_value}" for name, option_value in options.items() if option_value not in (None, "")]
        yield f"  {rule['field'].get('name')!s:<16}{', '.join(words)}"


def _options(rule: dict[str, Any]) -> dict[str, Any]:
    """Return how the files of a field are read."""
    options = rule.get("read")
    return options if isinstance(options, dict) else {}


def _split_lines(split: Split) -> Iterator[str]:
    """A split, and its parts if rows have different fields."""
    rejects = f", {split.rejects} rejects" if split.rejects else ""
    yield f"  {split.name:<10}{counted(split.rows, 'row')}, {counted(split.shards, 'shard')}{rejects}"
    if len(split.parts) > 1:
        yield from (f"  {'':<10}{counted(part.rows, 'row')} with {', '.join(part.fields)}" for part in split.parts)


def _swatch(colour: tuple[int, int, int] | None) -> str:
    return " " * 8 if colour is None else "#{:02x}{:02x}{:02x} ".format(*colour)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total if total else 0:7.3f} %"


def _value_text(key: str, value: object) -> str:
    if key == "size" and isinstance(value, list):
        return "x".join(map(str, value)) or "the size of each image"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
