"""`packer show`: a row of a pack in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show, show_drawn
from packer.cli.style import StyleOptions, style_of, style_options
from packer.cli.terminal import AUTO, COLOURS, MANY, NONE, colours_of_terminal
from packer.cli.values import FolderType

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from readers.pictures.draw import Picture
    from readers.pictures.legend import LegendLine

FILE = 80, 40
"""The columns and lines of a picture that does not go to a terminal."""
MOST_CLASSES = 12
LEAST_LINES = 8


@click.command("show")
@click.argument("out", type=FolderType())
@click.argument("key")
@click.option("--split", help="The split of the row, if several have the key.")
@style_options
@click.option(
    "--colours",
    type=click.Choice((AUTO, *COLOURS)),
    default=AUTO,
    show_default=True,
    help="Colours of the terminal; none draws plain characters.",
)
def show_command(out: Path, key: str, split: str | None, colours: str, **style: Unpack[StyleOptions]) -> None:
    """Draw the row of OUT with this KEY in the terminal: the picture with its label over it, and its classes.

    The picture is as wide as the terminal. Files, pipes, NO_COLOR and terminals without colours get plain characters
    for dark and bright.

    \b
    Example:
      packer show out/ street_004
      packer show out/ street_004 --field depth
    """
    with loading():
        from packer.packs.so_far import open_so_far
        from readers.contract.manifest import ALL
        from readers.find_key import find_key
        from readers.pictures.blocks import fitted_blocks
        from readers.row_pictures import RowPictures
    pack = open_so_far(out.absolute())
    row = find_key(pack, key, pack.rows_of(split or ALL))
    pictures = RowPictures(pack, style_of(style))
    colours = colours_of_terminal() if colours == AUTO else colours
    classes, size = pictures.classes(row), pictures.size(row)
    columns, lines = shutil.get_terminal_size(FILE)
    lines = max(LEAST_LINES, lines - min(len(classes), MOST_CLASSES) - 3)
    picture = pictures.at(row, fitted_blocks(size, columns, lines))
    show(join_lines([f"{key}  {pack.split_at(row).name}, {pictures.size_text(row)}, {pictures.text_at(row)}"]))
    _print_picture(picture, colours)
    _print_classes(classes, colours)


def _print_picture(picture: Picture, colours: str) -> None:
    with loading():
        from readers.pictures.blocks import coloured, shades
    show_drawn(shades(picture) if colours == NONE else coloured(picture, colours == MANY))


def _print_classes(classes: Sequence[LegendLine], colours: str) -> None:
    with loading():
        from readers.contract.plain_text import one_line
        from readers.pictures.blocks import swatch
    shown = classes[:MOST_CLASSES]
    width = max((len(one_line(line.name)) for line in shown), default=0)
    swatches = ["" if colours == NONE else f"{swatch(line.colour, colours == MANY)} " for line in shown]
    names = [f"{one_line(line.name):<{width}}  {line.share:>8}" for line in shown]
    show_drawn(map("".join, zip(swatches, names, strict=True)))
    if len(classes) > len(shown):
        show(f"and {len(classes) - len(shown)} more")
