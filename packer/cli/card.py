"""`packer card`: the card of a data set."""

from __future__ import annotations

from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.values import FolderType, OutputFile
from packer.errors import UsageError


@click.command("card")
@click.argument("out", type=FolderType())
@click.option("-o", "--output", type=OutputFile(), help="The file to write. Default: OUT-card/README.md.")
@click.option("--name", help="The name of the data set. Default: the name of OUT.")
@click.option("--description", default="", help="What the data set shows, and where it is from.")
@click.option(
    "--licence", "--license", default="other", show_default=True, help="An identifier such as cc-by-4.0, or an address."
)
@click.option("--url", default="", help="The address of the data set.")
@click.option("--files", is_flag=True, help="List every file with its SHA-256. Reads the whole pack.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draw other rows for the sheet.")
def card_command(
    out: Path, output: Path | None, name: str | None, description: str, licence: str, url: str, files: bool, seed: int
) -> None:
    """Write the card of OUT: a page for people and the Hugging Face Hub, with its splits, classes, palette and recipe.

    Next to it, croissant.json describes the data set for programs (Croissant, JSON-LD), and sheet.jpg shows
    twelve rows. Files that no card wrote are not replaced.

    \b
    Example:
      packer card out/ -o card/README.md --licence cc-by-4.0
    """
    with loading():
        from packer.report.card import CARD
        from packer.report.croissant import About
        from packer.report.write_card import write_card
    if output is None:
        output = out.absolute().with_name(f"{out.absolute().name}-card") / CARD
    if output.suffix.lower() != ".md":
        raise UsageError(f"--output {output}: expected a name that ends with .md")
    title = name or out.absolute().name
    about = About(title, description or f"{title}, packed by segpack for training.", licence, url)
    show(join_lines(map(str, write_card(out, output, about, files=files, seed=seed))), err=True)
