"""`packer info`: show the contents of a packed data set."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.output import join_lines, show
from packer.cli.values import bytes_text, shape_text
from readers.contract.fields import RAW, Field
from readers.contract.manifest import Manifest, Split
from readers.contract.statistics import class_counts


@click.command("info")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def info_command(out: Path, as_json: bool) -> None:
    """Show the format, fields, classes, splits, counts, bytes and recipe of OUT. Reads only the manifest.

    \b
    Example:
      packer info out/
      packer info --json out/ | jq .splits
    """
    manifest = Manifest.load(out)
    show(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False) if as_json else _text(manifest))


def _text(manifest: Manifest) -> str:
    recipe = manifest.recipe
    counts = class_counts(manifest.statistics)
    labelled = counts.count
    lines = [
        f"format      {manifest.storage}, generation {manifest.generation} of {manifest.created}",
        f"bytes       {manifest.bytes:,} ({bytes_text(manifest.bytes)}) in {manifest.shards} shards",
        f"rows        {manifest.rows}",
        *map(_split_line, manifest.splits),
        "fields",
        *map(_field_line, manifest.fields),
        f"classes     {len(manifest.classes)}, share of the label pixels",
        *(
            f"  {number:<4}{_swatch(entry.colour)} {_share(count, labelled)}  {entry.name}"
            for number, (entry, count) in enumerate(zip(manifest.classes.classes, counts.classes, strict=True))
        ),
        f"  {'':<12} {_share(counts.ignored, labelled)}  (ignored; index {manifest.classes.ignore_index})",
        "recipe",
        *(f"  {key:<16}{_value_text(key, value)}" for key, value in recipe.items() if key != "classes"),
    ]
    return join_lines(lines)


def _field_line(field: Field) -> str:
    notes = [field.kind, field.form, *([] if field.encoding == RAW else [field.encoding])]
    return f"  {field.name:<10}{field.dtype} {shape_text(field.shape)} {' '.join(notes)}"


def _split_line(split: Split) -> str:
    rejects = f", {split.rejects} rejects" if split.rejects else ""
    parts = [f"; {part.rows} rows with {' and '.join(part.fields)}" for part in split.parts if len(split.parts) > 1]
    return f"  {split.name:<10}{split.rows} rows, {split.shards} shards{rejects}{''.join(parts)}"


def _swatch(colour: tuple[int, int, int] | None) -> str:
    return " " * 8 if colour is None else "#{:02x}{:02x}{:02x} ".format(*colour)


def _share(count: int, total: int) -> str:
    return f"{100 * count / total if total else 0:7.3f} %"


def _value_text(key: str, value: object) -> str:
    if key == "size" and isinstance(value, list):
        return "x".join(map(str, value)) or "the size of each image"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
