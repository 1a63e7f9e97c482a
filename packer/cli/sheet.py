"""`packer sheet`: rows of a pack with their labels, as a picture in a file."""

from __future__ import annotations

from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.values import FolderType, OutputFile, bytes_text
from packer.errors import UsageError

KINDS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


@click.command("sheet")
@click.argument("out", type=FolderType())
@click.option("-n", "--rows", type=click.IntRange(1, 600), default=24, show_default=True, help="Number of rows.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default="sheet.png",
    show_default=True,
    help="The file to write: .png, .jpg or .webp.",
)
@click.option("--split", help="Only rows of this split. Default: all rows.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draw other rows.")
@click.option("--key", "keys", multiple=True, help="Show the row with this key. Can be repeated.")
@click.option("--field", help="The field to lay over the picture, or the picture to show. Default: the label.")
@click.option("--opacity", type=click.FloatRange(0, 1), help="Opacity of the label. Default: 0.5, measured values 1.")
@click.option("--outlines", is_flag=True, help="Draw the edges of classes and objects.")
@click.option("--colour-blind", is_flag=True, help="Use colours that colour-blind people can tell apart.")
def sheet_command(
    out: Path,
    rows: int,
    output: Path,
    split: str | None,
    seed: int,
    keys: tuple[str, ...],
    field: str | None,
    opacity: float | None,
    outlines: bool,
    colour_blind: bool,
) -> None:
    """Write a contact sheet of OUT: rows with their label over the picture, their keys, and the classes.

    The rows are a fair draw that follows from --seed, or those of --key.

    \b
    Examples:
      packer sheet out/
      packer sheet out/ --split val -n 60 -o val.png
      packer sheet out/ --key street_004 --key street_011 --opacity 0.7 -o two.png
    """
    if output.suffix.lower() not in KINDS:
        raise UsageError(f"--output {output}: expected a name that ends with {', '.join(KINDS)}")
    with loading():
        from io import BytesIO

        from readers.contract.atomic import write_atomic
        from readers.contract.manifest import ALL
        from readers.find_key import find_key
        from readers.pack import Pack
        from readers.row_pictures import Style, sheet_of
    pack = Pack.open(out.absolute())
    there = pack.rows_of(split or ALL)
    picked = [find_key(pack, key, there) for key in keys] or None
    style = Style(field, opacity, outlines=outlines, colour_blind=colour_blind)
    image, file = sheet_of(pack, there, split, picked, rows, seed, style), BytesIO()
    image.save(file, KINDS[output.suffix.lower()], quality=90, compress_level=4)
    write_atomic(output, file.getvalue())
    shown = len(picked or range(min(rows, len(there))))
    show(f"{output}: {shown} rows, {image.width}x{image.height} pixels, {bytes_text(len(file.getvalue()))}")
