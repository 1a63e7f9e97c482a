"""`packer forget`: remove a row from every kept generation of a pack, and prove it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import join_lines, show
from packer.cli.values import FolderType
from packer.errors import counted

if TYPE_CHECKING:
    from packer.packs.forget import ChangedGeneration, ChangedShard, Forgotten

DIGITS = 16
"""The digits of a checksum that a line has; --json has all."""


@click.command("forget")
@click.argument("out", type=FolderType())
@click.argument("key")
@click.option("--split", "splits", multiple=True, help="Only the row of this split; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the proof as JSON, with whole checksums.")
def forget_command(out: Path, key: str, splits: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Remove the row KEY from every kept generation of OUT; of a picture in tiles, all its tiles.

    Its shards are written again without it, the manifests replaced, the old shards deleted. The lines
    that it prints are the proof: receipts and manifests before and after. Generations keep their
    numbers. A training that has OUT open may fail. OUT must not be pinned, nor have parts of a plan.

    \b
    Example:
      packer which raw/train/images/street_004.png out/
      packer forget out/ street_004 --json > proof.json
    """
    with loading():
        from packer.packs.forget import forget_row
    proof = forget_row(out, key, splits=splits, dry_run=dry_run)
    show(
        json.dumps({**asdict(proof), "dry_run": dry_run}, indent=1, ensure_ascii=False)
        if as_json
        else join_lines(_lines(out, proof, dry_run))
    )
    for words in _left(proof):
        LOG.say("left", f"{out}: {words}")


def _lines(out: Path, proof: Forgotten, dry_run: bool) -> Iterator[str]:
    forgets = "would forget" if dry_run else "forgot"
    rows = ", ".join(proof.rows) or f"leftovers of {proof.key}"
    yield f"{out}: {forgets} {rows}; {counted(len(proof.deleted), 'file')} deleted"
    yield from map(_shard_line, proof.shards)
    yield from map(_generation_line, proof.generations)


def _shard_line(shard: ChangedShard) -> str:
    before = f"shard {shard.before}, {counted(shard.rows_before, 'row')}, receipt {shard.receipt_before[:DIGITS]}"
    rows = counted(shard.rows_after, "row")
    if not shard.after:
        return f"{before} -> {rows}"
    return f"{before} -> {shard.after}, {rows}, receipt {shard.receipt_after[:DIGITS]}"


def _generation_line(generation: ChangedGeneration) -> str:
    after = f" -> {generation.manifest_after[:DIGITS]}" if generation.manifest_after else ""
    return f"generation {generation.number}, manifest {generation.manifest_before[:DIGITS]}{after}"


def _left(proof: Forgotten) -> Iterator[str]:
    """Say what may still have the row."""
    if proof.raw:
        yield f"delete the raw files, else the next build packs them again: {', '.join(proof.raw)}"
    if proof.copies:
        yield f"staged copies have the row; remove them with packer stage --drop: {', '.join(proof.copies)}"
    yield "copies that packer push and pull, or caches of open_dataset, have made elsewhere are not reached"
