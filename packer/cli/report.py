"""`packer report`: a page about a pack."""

from __future__ import annotations

from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import FolderType, OutputFile, bytes_text


@click.command("report")
@click.argument("out", type=FolderType())
@click.option(
    "-o", "--output", type=OutputFile(), default=Path("report.html"), show_default=True, help="The file to write."
)
@click.option("-n", "--rows", type=click.IntRange(0, 200), default=16, show_default=True, help="Rows of the fair draw.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed draws other rows.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def report_command(out: Path, output: Path, rows: int, seed: int, quiet: bool) -> None:
    """Write a page about OUT in one file: its splits and classes, where each class is and which occur together,
    weights for a loss, sizes, the rows at the ends of each scale, a fair draw, findings and rejects.

    The page has no scripts and loads nothing: mail it, or keep it with the run.

    \b
    Example:
      packer report out/ -o report.html
    """
    with loading():
        from packer.publish.atomic import write_atomic
        from packer.report.page import html
        from packer.report.report import make_report
    text = html(make_report(out, rows, seed, shown(quiet)))
    write_atomic(output, text)
    show(f"{output}: {bytes_text(len(text.encode()))}", err=True)
