"""`packer stage`: copy a pack to a local disk or into memory; list and drop such copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.copied import show_copied
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.publishing import publishing
from packer.cli.values import FolderType, PackType, bytes_text
from packer.errors import UsageError

if TYPE_CHECKING:
    from packer.packs.staged_copies import StagedCopy


@click.command("stage")
@click.argument("out", type=PackType(), required=False)
@click.argument("target", type=FolderType("to copy to a store: packer push OUT {url}"), required=False)
@click.option("--ram", is_flag=True, help="Copy into memory, /dev/shm, instead of a folder TARGET.")
@click.option("--list", "listing", is_flag=True, help="List the copies on this machine.")
@click.option("--drop", "dropping", is_flag=True, help="Remove the copies of OUT, or the copy OUT, from this machine.")
@click.option("--workers", type=click.IntRange(1), help="Shards to copy at the same time. Default: number of cores.")
@click.option("--json", "as_json", is_flag=True, help="Print the copies as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def stage_command(
    out: Path | str | None,
    target: Path | None,
    ram: bool,
    listing: bool,
    dropping: bool,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Copy the current generation of OUT to TARGET, a folder on a local disk, or into memory with --ram.

    TARGET is made if the folder around it exists.

    Every file is checked against its checksum. Shards that the copy already has are not copied again. Afterwards
    open_dataset("OUT") reads the copy, as long as the staged generation is the current one of OUT.

    \b
    Example:
      packer stage out/ /local/nvme
      packer stage --ram out/
      packer stage s3://bucket/out /local/nvme
      packer stage --list
      packer stage --drop out/
    """
    with loading():
        from packer.packs.staged_copies import drop_copies, list_copies
    if listing and dropping:
        raise UsageError("--list and --drop cannot be combined")
    if listing:
        _allow(out is None and target is None and not ram, "--list takes no other option than --json")
        _print_copies(list_copies(), as_json, "staged")
    elif out is None:
        raise UsageError("name the pack: packer stage OUT TARGET, or packer stage --list")
    elif dropping:
        _allow(target is None and not ram, "--drop takes only OUT")
        _print_copies(drop_copies(out), as_json, "dropped")
    else:
        _stage(out, target, ram, workers, as_json, quiet)


def _allow(fits: bool, message: str) -> None:
    if not fits:
        raise UsageError(message)


def _stage(out: Path | str, target: Path | None, ram: bool, workers: int | None, as_json: bool, quiet: bool) -> None:
    with loading():
        from packer.packs.stage import stage_pack, target_folder
        from packer.packs.staged_copies import copy_folder
        from readers.staged_copies import FOLDERS_VARIABLE
    folder = target_folder(target, ram)
    with publishing(copy_folder(out, folder)):
        staged = stage_pack(out, target, ram=ram, workers=workers, progress=shown(quiet))
    where = f"{out}: generation {staged.manifest.generation} is staged at {staged.path}"
    show_copied({"path": str(staged.path)}, where, staged, as_json)
    if staged.opened != staged.path:
        LOG.say(
            "warning",
            f"warning: open_dataset reads {staged.opened or 'OUT itself'}; "
            f"set {FOLDERS_VARIABLE}={folder} to read this copy",
        )


def _print_copies(copies: Sequence[StagedCopy], as_json: bool, action: str) -> None:
    facts: list[dict[str, Any]] = [
        {
            "source": str(copy.source),
            "generation": None if copy.manifest is None else copy.manifest.generation,
            "path": str(copy.path),
            "bytes": copy.bytes,
        }
        for copy in copies
    ]
    if as_json:
        show(json.dumps(facts, indent=1))
        return
    if not facts:
        show(f"nothing is {action} on this machine")
    for copy in facts:
        generation = "unfinished" if copy["generation"] is None else f"generation {copy['generation']}"
        show(f"{copy['source']}: {generation}, {bytes_text(copy['bytes'])}, {action} at {copy['path']}")
