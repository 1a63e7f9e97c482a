"""`packer stage`: a verified copy of a pack near those who read it; which there are; and away with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from packer.build import all_cores
from packer.cli.log import LOG, publishing
from packer.cli.progress import progress
from packer.cli.values import bytes_text
from packer.errors import UsageError
from packer.packs.stage import Staged, stage
from packer.packs.staged_copies import Copy, copies, copy_folder, drop
from readers.contract.manifest import Manifest
from readers.staged_copies import MEMORY, PLACES, find


@click.command("stage", short_help="Bring a pack to local disk or memory.")
@click.argument("out", type=click.Path(path_type=Path), required=False)
@click.argument("target", type=click.Path(path_type=Path), required=False)
@click.option("--ram", is_flag=True, help=f"Into memory, {MEMORY}, instead of a folder TARGET.")
@click.option("--list", "listing", is_flag=True, help="Tell what is staged on this machine.")
@click.option("--drop", "dropping", is_flag=True, help="Remove the copies of OUT, or the copy OUT, from this machine.")
@click.option("--workers", type=click.IntRange(1), help="Shards that are copied at once. Default: as many as cores.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done, or is there, as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def stage_command(
    out: Path | None,
    target: Path | None,
    ram: bool,
    listing: bool,
    dropping: bool,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Bring the current generation of OUT to TARGET, a folder on a local disk, or with --ram into memory.

    Every file is held against its checksum on the way. Only shards that are not there yet are copied. From then on
    open_dataset("OUT") reads the copy, as long as OUT's current generation is the one that was staged.

    \b
    Example:
      packer stage out/ /local/nvme
      packer stage --ram out/
      packer stage --list
      packer stage --drop out/
    """
    if listing and dropping:
        raise UsageError("--list and --drop are two different things: one at a time")
    if listing:
        _only(out is None and target is None and not ram, "--list stands alone, or with --json")
        _print_copies(copies(), as_json, "staged")
    elif out is None:
        raise UsageError("which pack? packer stage OUT TARGET, or packer stage --list")
    elif dropping:
        _only(target is None and not ram, "--drop takes OUT alone")
        _print_copies(drop(out), as_json, "dropped")
    else:
        _only(ram is (target is None), "where to? either a folder TARGET or --ram")
        _stage(out, (target or MEMORY).absolute(), workers or all_cores(), as_json, quiet)


def _only(fits: bool, words: str) -> None:
    if not fits:
        raise UsageError(words)


def _stage(out: Path, place: Path, workers: int, as_json: bool, quiet: bool) -> None:
    copy = copy_folder(out, place)
    with publishing(copy), progress("staging", Manifest.load(out).bytes, "B", quiet) as advance:
        done = stage(out, place, workers, advance)
    _print_staged(out, done, as_json)
    found = find(done.manifest)
    if found != copy:
        where = "OUT itself" if found is None else str(found)
        LOG.say("warning", f"warning: open_dataset reads {where}: say {PLACES}={place}, and it reads this copy")


def _print_staged(out: Path, done: Staged, as_json: bool) -> None:
    manifest = done.manifest
    facts = {
        "path": str(done.path),
        "generation": manifest.generation,
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "copied_shards": done.shards,
        "copied_bytes": done.bytes,
    }
    click.echo(
        json.dumps(facts, indent=1)
        if as_json
        else f"{out}: generation {manifest.generation} is staged at {done.path}; {done.shards} of {manifest.shards} "
        f"shards were copied, {bytes_text(done.bytes)} of {bytes_text(manifest.bytes)}"
    )


def _print_copies(found: Sequence[Copy], as_json: bool, what: str) -> None:
    facts: list[dict[str, Any]] = [
        {
            "source": str(copy.source),
            "generation": None if copy.manifest is None else copy.manifest.generation,
            "path": str(copy.path),
            "bytes": copy.bytes,
        }
        for copy in found
    ]
    if as_json:
        click.echo(json.dumps(facts, indent=1))
    elif not facts:
        click.echo(f"nothing is {what} on this machine")
    for one in [] if as_json else facts:
        generation = "unfinished" if one["generation"] is None else f"generation {one['generation']}"
        click.echo(f"{one['source']}: {generation}, {bytes_text(one['bytes'])}, {what} at {one['path']}")
