"""`packer log`, `packer rollback` and `packer gc`: the generations of a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from packer.cli.log import publishing
from packer.cli.values import TimeType, bytes_text
from packer.packs.generations import DEFAULT_KEEP, Generation, delete_garbage, list_generations, rollback_pack
from readers.contract.manifest import Manifest


@click.command("log", short_help="List the generations.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def log_command(out: Path, as_json: bool) -> None:
    """List the generations that OUT has kept, the newest first. A star marks the current one.

    \b
    Example:
      packer log out/
    """
    generations = list_generations(out)
    if as_json:
        click.echo(json.dumps([_facts(generation) for generation in generations], indent=1, ensure_ascii=False))
        return
    for generation in generations:
        click.echo(" ".join(_words(generation)))


@click.command("rollback", short_help="Make an older generation current.")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("number", type=click.IntRange(1))
def rollback_command(out: Path, number: int) -> None:
    """Make generation NUMBER of OUT the current one again. Nothing is deleted. The next build continues from there.

    \b
    Example:
      packer rollback out/ 41
    """
    before = Manifest.load(out)
    with publishing(out):
        manifest = rollback_pack(out, number)
    click.echo(f"{out}: generation {number} ({manifest.rows} rows) is current; it was {before.generation}")


@click.command("gc", short_help="Delete shards that only old generations use.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--keep", type=click.IntRange(1), default=DEFAULT_KEEP, show_default=True, help="Number of generations to keep."
)
@click.option(
    "--grace",
    type=TimeType(),
    default="24h",
    show_default=True,
    help="Also keep generations that were current, and files that were made, within this time: 90s, 30m, 24h, 7d.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the deleted files as JSON.")
def gc_command(out: Path, keep: int, grace: float, dry_run: bool, as_json: bool) -> None:
    """Delete the generations of OUT that are older than the last --keep, and the shards that only they use.

    A training run that has an old generation open keeps the shards that it has read from, but may fail to open more.
    So choose a --grace that is longer than an epoch.

    \b
    Example:
      packer gc --keep 7 --dry-run out/
      packer gc --keep 7 out/
    """
    garbage = delete_garbage(out, keep, grace, dry_run=dry_run)
    facts: dict[str, Any] = {
        "kept": list(garbage.kept),
        "generations": len(garbage.manifests),
        "files": [str(path.relative_to(out)) for path in garbage.paths],
        "bytes": garbage.bytes,
    }
    deleted = "would be deleted" if dry_run else "deleted"
    kept = ", ".join(map(str, garbage.kept))
    click.echo(
        json.dumps(facts, indent=1)
        if as_json
        else f"{out}: {len(garbage.manifests)} generations and {len(garbage.paths)} files, "
        f"{bytes_text(garbage.bytes)}, {deleted}; kept {kept}"
    )


def _facts(generation: Generation) -> dict[str, Any]:
    manifest = generation.manifest
    facts: dict[str, Any] = {"generation": generation.number, "current": generation.current}
    if manifest is None:
        return {**facts, "damage": generation.damage}
    return {
        **facts,
        "created": manifest.created,
        "storage": manifest.storage,
        "rows": manifest.rows,
        "splits": {split.name: split.rows for split in manifest.splits},
        "rejects": sum(split.rejects for split in manifest.splits),
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "changed": list(generation.changed),
    }


def _words(generation: Generation) -> Iterator[str]:
    manifest = generation.manifest
    yield f"{'*' if generation.current else ' '} {generation.number:<5}"
    if manifest is None:
        yield f"damaged: {generation.damage}"
        return
    yield f"{manifest.created}  {manifest.storage:<6}{manifest.rows:>9} rows "
    yield f"({', '.join(f'{split.name} {split.rows}' for split in manifest.splits)}),"
    yield f"{manifest.shards} shards, {bytes_text(manifest.bytes)}"
    if generation.changed:
        yield f"- {', '.join(generation.changed)} changed"
