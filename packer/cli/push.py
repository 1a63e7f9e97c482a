"""`packer push` and `packer pull`: copy a pack to a store, and from there to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.copied import show_copied
from packer.cli.loading import loading
from packer.cli.progress import shown
from packer.cli.publishing import publishing
from packer.cli.store_options import no_conditions_option
from packer.cli.values import PackType

if TYPE_CHECKING:
    from packer.packs.copy_shards import Copied

_workers = click.option(
    "--workers", type=click.IntRange(1), help="Shards to copy at the same time. Default: number of cores."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
_quiet = click.option("--quiet", is_flag=True, help="Show no progress.")


@click.command("push")
@click.argument("out", type=PackType())
@click.argument("url", type=PackType())
@_workers
@no_conditions_option
@_json
@_quiet
def push_command(
    out: Path | str, url: Path | str, workers: int | None, no_conditions: str, as_json: bool, quiet: bool
) -> None:
    """Copy the current generation of OUT to URL: a bucket (s3://, gs://, az://), the Hugging Face Hub, or a folder.

    Shards that URL has are not copied again. Every byte is checked against its digest. The
    manifest comes last: until then, readers of URL see the old generation.

    A push that was stopped is run again. URL must be empty, or have an older generation of OUT.

    \b
    Example:
      packer push out/ s3://bucket/city
      packer push out/ hf://datasets/me/city
    """
    with loading():
        from packer.packs.push import push_pack
        from readers.stores.open_store import open_store
    with publishing(open_store(url)):
        copied = push_pack(out, url, workers=workers, no_conditions=no_conditions, progress=shown(quiet))
    _show(out, url, copied, as_json)


@click.command("pull")
@click.argument("url", type=PackType())
@click.argument("out", type=PackType())
@_workers
@_json
@_quiet
def pull_command(url: Path | str, out: Path | str, workers: int | None, as_json: bool, quiet: bool) -> None:
    """Copy the current generation of the pack at URL to OUT, a folder.

    The opposite of packer push: shards that OUT has are not copied again, every byte is
    checked, and OUT must be new, or have an older generation of the same pack.

    \b
    Example:
      packer pull s3://bucket/city out/
      packer pull hf://datasets/me/city@main out/
    """
    with loading():
        from packer.packs.push import pull_pack
        from readers.stores.open_store import open_store
    with publishing(open_store(out)):
        copied = pull_pack(url, out, workers=workers, progress=shown(quiet))
    _show(url, out, copied, as_json)


def _show(source: Path | str, target: Path | str, copied: Copied, as_json: bool) -> None:
    where = f"{target}: has generation {copied.manifest.generation} of {source}"
    show_copied({"from": str(source), "to": str(target)}, where, copied, as_json)
