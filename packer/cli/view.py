"""`packer view`: a page about a pack on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.values import FolderType
from packer.errors import UsageError


@click.command("view")
@click.argument("out", type=FolderType())
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen there: 0.0.0.0 lets other machines in.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--against", type=click.IntRange(1), help="Show the rows of this older generation next to ours.")
@click.option(
    "--scores",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV of key, or split/key, and number, to sort and filter by.",
)
def view_command(out: Path, port: int, host: str, open_page: bool, against: int | None, scores: Path | None) -> None:
    """Show OUT as a page in the browser: browse, filter and sort its rows, look at one with its labels.

    Only this machine can open the page (see --host), and only with the printed address. The page loads nothing from
    elsewhere, and the command runs until Ctrl-C.

    \b
    Example:
      packer view out/ --open
    """
    with loading():
        try:
            from packer.view.serve import serve
            from packer.view.viewed import Settings
        except ModuleNotFoundError as error:
            if error.name not in ("starlette", "uvicorn"):
                raise
            raise UsageError("packer view needs Starlette and uvicorn: pip install 'segpack[view]'") from error
    serve(Settings(out, against, scores), host, port, open_page, show)
