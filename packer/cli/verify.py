"""`packer verify`: every byte checked against its checksum."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.page import show_page
from packer.cli.progress import shown
from packer.cli.store_options import scratch_option
from packer.cli.values import PackType, bytes_text
from packer.errors import counted
from readers.contract.errors import DamagedError


@click.command("verify")
@click.argument("out", type=PackType())
@click.option("--deep", is_flag=True, help="Also read every row: its checksum, key and label values.")
@click.option("--sha256sums", is_flag=True, help="Print the SHA-256 of each file, for sha256sum --check.")
@click.option("--workers", type=click.IntRange(1), help="Number of cores to use. Default: all.")
@scratch_option
@click.option("--json", "as_json", is_flag=True, help="Print what was checked and found as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def verify_command(
    out: Path | str,
    deep: bool,
    sha256sums: bool,
    workers: int | None,
    scratch: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check every byte of OUT against its checksum, and name the damage, down to the row and its field.
    Exit 4 if there is damage.

    Checksums do not show that a pack was built wrongly. With --deep, every row is also read as in training: it must
    have the checksum and key of its receipt, and every label pixel must be in a class or ignored.

    With a URL, each shard is copied to --scratch, checked, and removed again.

    Receipts have the BLAKE3 of the files. With --sha256sums, an undamaged pack also prints their SHA-256.

    \b
    Examples:
      packer verify out/
      packer verify --deep s3://bucket/out
      packer verify --sha256sums out/ > sums.txt && (cd out/ && sha256sum --check --quiet ../sums.txt)
    """
    if sha256sums and as_json:
        raise click.UsageError("--sha256sums prints lines for sha256sum, and --json one document; take one of them")
    with loading():
        from packer.packs import sha256sums as sums
        from packer.packs.stored import manifest_at
        from packer.packs.verify_pack import verify_pack
        from readers.contract.manifest import Manifest
    if sha256sums and isinstance(out, str):
        raise click.UsageError(f"--sha256sums: needs the files of a folder; packer pull {out} OUT brings them")
    manifest = Manifest.load(out) if isinstance(out, Path) else manifest_at(out)
    damage = verify_pack(out, deep=deep, workers=workers, scratch=scratch, progress=shown(quiet))
    messages = list(map(str, damage))
    error = f"{out}: {counted(len(damage), 'problem')}; {_advice(out)}" if damage else None
    if as_json:
        facts = {"bytes": manifest.bytes, "shards": manifest.shards, "damage": messages, "error": error}
        facts["damaged"] = [{"shard": item.shard, "row": item.row, "field": item.field} for item in damage]
        show(json.dumps(facts, indent=1))
    elif damage:
        show_page(messages)
    else:
        if sha256sums and isinstance(out, Path):
            show(join_lines(sums.sha256sums(out, workers)))
        size = f"{counted(manifest.shards, 'shard')}, {counted(manifest.rows, 'row')}, {bytes_text(manifest.bytes)}"
        show(f"{out}: whole; {size}", err=sha256sums)
    if error is not None:
        raise DamagedError(error)


def _advice(out: Path | str) -> str:
    if isinstance(out, Path):
        return f"packer repair {out} builds damaged shards again"
    return "delete the objects that are named; the next packer build or packer push puts whole ones there"
