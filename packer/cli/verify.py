"""`packer verify`: every byte checked against its checksum."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.progress import progress
from packer.cli.values import bytes_text
from packer.packs.verify import verify
from readers.contract.errors import DamagedError
from readers.contract.manifest import Manifest
from readers.machine import usable_cores


@click.command("verify", short_help="Check every byte of a packed data set.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--deep", is_flag=True, help="Also read every row: its checksum, key and label values.")
@click.option("--workers", type=click.IntRange(1), help="Cores to use. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print what was checked and found as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def verify_command(out: Path, deep: bool, workers: int | None, as_json: bool, quiet: bool) -> None:
    """Check every byte of OUT against its checksum, and name what is damaged, down to the sample. Exit 4 if any is.

    Checksums cannot tell that a pack was made wrongly. With --deep, every row is also read as in training: it must have
    the checksum and key of its receipt, and every label pixel must be of a class, or ignored.

    \b
    Example:
      packer verify out/
    """
    manifest = Manifest.load(out)
    with progress("verifying", manifest.bytes, "B", quiet) as advance:
        damage = verify(out, workers or usable_cores(), advance, deep)
    if as_json:
        click.echo(json.dumps({"bytes": manifest.bytes, "shards": manifest.shards, "damage": damage}, indent=1))
    elif damage:
        click.echo("\n".join(damage))
    else:
        click.echo(f"{out}: whole; {manifest.shards} shards, {manifest.rows} rows, {bytes_text(manifest.bytes)}")
    if damage:
        raise DamagedError(f"{out}: {len(damage)} problems; packer repair OUT RAW builds again what is damaged")
