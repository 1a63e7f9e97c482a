"""`packer sheet`: rows of a pack with their labels, as a picture in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.style import StyleOptions, style_of, style_options
from packer.cli.values import FolderType, OutputFile, bytes_text
from packer.errors import UsageError, counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
@style_options
def sheet_command(
    out: Path,
    rows: int,
    output: Path,
    split: str | None,
    seed: int,
    keys: tuple[str, ...],
    **style: Unpack[StyleOptions],
) -> None:
    """Write a contact sheet of OUT: rows with their label over the picture, their keys, and the classes.

    The rows are drawn by --seed, or named by --key.

    \b
    Examples:
      packer sheet out/
      packer sheet out/ --split val -n 60 -o val.png
      packer sheet out/ --key street_004 --key street_011 --opacity 0.7 -o two.png
      packer sheet out/ --class person --class rider --outlines
    """
    if output.suffix.lower() not in KINDS:
        raise UsageError(f"--output {output}: expected a name that ends with {', '.join(KINDS)}")
    with loading():
        from io import BytesIO

        from packer.packs.so_far import open_so_far
        from readers.contract.atomic import write_atomic
        from readers.contract.manifest import ALL
        from readers.find_key import find_key
        from readers.row_pictures import RowPictures
        from readers.row_sheet import Choice, row_sheet
    pack = open_so_far(out.absolute())
    rows_of_split = pack.rows_of(split or ALL)
    picked = [find_key(pack, key, rows_of_split) for key in keys] or None
    choice = Choice(rows_of_split, [split or ALL], rows, seed, picked)
    image, file = row_sheet(RowPictures(pack, style_of(style)), out.absolute().name, choice), BytesIO()
    image.save(file, KINDS[output.suffix.lower()], quality=90, compress_level=4)
    write_atomic(output, file.getvalue())
    size = f"{image.width}x{image.height} pixels, {bytes_text(len(file.getvalue()))}"
    show(f"{output}: {counted(len(choice.shown), 'row')}, {size}")
