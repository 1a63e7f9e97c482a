"""`packer verify`: every byte checked against its checksum."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.page import show_page
from packer.cli.progress import shown
from packer.cli.values import FolderType, bytes_text
from readers.contract.errors import DamagedError


@click.command("verify")
@click.argument("out", type=FolderType())
@click.option("--deep", is_flag=True, help="Also read every row: its checksum, key and label values.")
@click.option("--sha256sums", is_flag=True, help="Print the SHA-256 of each file, for sha256sum --check.")
@click.option("--workers", type=click.IntRange(1), help="Number of cores to use. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print what was checked and found as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def verify_command(out: Path, deep: bool, sha256sums: bool, workers: int | None, as_json: bool, quiet: bool) -> None:
    """Check every byte of OUT against its checksum, and name what is damaged, down to the row and its field.
    Exit 4 if anything is.

    Checksums do not show that a pack was built wrongly. With --deep, every row is also read as in training: it must
    have the checksum and key of its receipt, and every label pixel must be in a class or ignored.

    A receipt has the BLAKE3 of its files. With --sha256sums, a whole pack also prints SHA-256, for who trusts that.

    \b
    Examples:
      packer verify out/
      packer verify --sha256sums out/ > sums.txt && (cd out/ && sha256sum --check --quiet ../sums.txt)
    """
    if sha256sums and as_json:
        raise click.UsageError("--sha256sums prints lines for sha256sum, and --json one document; take one of them")
    with loading():
        from packer.packs import sha256sums as sums
        from packer.packs.verify import verify_pack
        from readers.contract.manifest import Manifest
    manifest = Manifest.load(out)
    damage = verify_pack(out, deep=deep, workers=workers, progress=shown(quiet))
    messages = list(map(str, damage))
    error = f"{out}: {len(damage)} problems; packer repair {out} builds damaged shards again" if damage else None
    if as_json:
        facts = {"bytes": manifest.bytes, "shards": manifest.shards, "damage": messages, "error": error}
        facts["damaged"] = [{"shard": item.shard, "row": item.row, "field": item.field} for item in damage]
        show(json.dumps(facts, indent=1))
    elif damage:
        show_page(messages)
    else:
        if sha256sums:
            show(join_lines(sums.sha256sums(out, workers)))
        size = f"{manifest.shards} shards, {manifest.rows} rows, {bytes_text(manifest.bytes)}"
        show(f"{out}: whole; {size}", err=sha256sums)
    if error is not None:
        raise DamagedError(error)
