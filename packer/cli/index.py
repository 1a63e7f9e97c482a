"""`packer index`: count the classes of each cell of a pack that an older release built."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import PackType
from packer.errors import counted


@click.command("index")
@click.argument("out", type=PackType())
@click.option("--again", is_flag=True, help="Also count shards that have whole files.")
@click.option("--workers", type=click.IntRange(1), help="Number of cores to use. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print the number of shards as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def index_command(out: Path | str, again: bool, workers: int | None, as_json: bool, quiet: bool) -> None:
    """Count which class occurs in which cell of OUT, for windows that hold a class.

    packer build counts while it decodes. This is for packs of older releases. It writes files below OUT/cells, and
    goes on where it was killed.

    \b
    Example:
      packer index out/
    """
    with loading():
        from packer.packs.index import index_pack
    shards = index_pack(out, again=again, workers=workers, progress=shown(quiet))
    show(json.dumps({"shards": shards}) if as_json else f"{out}: {counted(shards, 'shard')} counted")
