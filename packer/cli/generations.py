"""`packer log`, `packer rollback` and `packer gc`: the generations of a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from packer.cli.log import publishing
from packer.cli.values import TimeType, bytes_text
from packer.packs.generations import Generation, delete, garbage, generations, recipe_changes, rollback
from packer.publish.lock import locked
from readers.contract.manifest import Manifest


@click.command("log", short_help="List the generations.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def log_command(out: Path, as_json: bool) -> None:
    """List the generations that OUT has kept, the newest first; the current one has a star.

    \b
    Example:
      packer log out/
    """
    known = generations(out)
    if as_json:
        facts = [_facts(one, older) for one, older in zip(known, [*known[1:], None], strict=True)]
        click.echo(json.dumps(facts, indent=1, ensure_ascii=False))
        return
    for one, older in zip(known, [*known[1:], None], strict=True):
        click.echo(" ".join(_words(one, older)))


@click.command("rollback", short_help="Make an older generation current.")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("number", type=click.IntRange(1))
def rollback_command(out: Path, number: int) -> None:
    """Make generation NUMBER of OUT the current one again. Nothing is deleted; the next build goes on from there.

    \b
    Example:
      packer rollback out/ 41
    """
    before = Manifest.load(out)
    with publishing(out), locked(out):
        manifest = rollback(out, number)
    click.echo(f"{out}: generation {number} ({manifest.rows} rows) is current; it was {before.generation}")


@click.command("gc", short_help="Delete what old generations alone need.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(1), default=7, show_default=True, help="How many generations stay.")
@click.option(
    "--grace",
    type=TimeType(),
    default="24h",
    show_default=True,
    help="Keep what was current, or was made, within this time: 90s, 30m, 24h, 7d.",
)
@click.option("--dry-run", is_flag=True, help="Only tell.")
@click.option("--json", "as_json", is_flag=True, help="Print what is deleted as JSON.")
def gc_command(out: Path, keep: int, grace: float, dry_run: bool, as_json: bool) -> None:
    """Delete the shards of OUT that only generations older than the last --keep name, and these generations.

    A training run that has an older generation open keeps the shards that it has read from; what it opens later may be
    gone. So --grace must be longer than an epoch.

    \b
    Example:
      packer gc --keep 7 --dry-run out/
      packer gc --keep 7 out/
    """
    with locked(out):
        found = garbage(out, keep, grace)
        size, files = found.bytes, [*found.manifests, *found.tables, *found.shards]
        if not dry_run:
            delete(out, found)
    facts: dict[str, Any] = {
        "kept": list(found.kept),
        "generations": len(found.manifests),
        "files": [str(path.relative_to(out)) for path in files],
        "bytes": size,
    }
    deleted = "would be deleted" if dry_run else "deleted"
    kept = ", ".join(map(str, found.kept))
    click.echo(
        json.dumps(facts, indent=1)
        if as_json
        else f"{out}: {len(found.manifests)} generations and {len(files)} files, {bytes_text(size)}, {deleted}; "
        f"kept {kept}"
    )


def _facts(one: Generation, older: Generation | None) -> dict[str, Any]:
    manifest = one.manifest
    facts: dict[str, Any] = {"generation": one.number, "current": one.current}
    if manifest is None:
        return {**facts, "damage": one.damage}
    return {
        **facts,
        "created": manifest.created,
        "storage": manifest.storage,
        "rows": manifest.rows,
        "splits": {split.name: split.rows for split in manifest.splits},
        "rejects": sum(split.rejects for split in manifest.splits),
        "shards": manifest.shards,
        "bytes": manifest.bytes,
        "changed": recipe_changes(older.manifest if older else None, manifest),
    }


def _words(one: Generation, older: Generation | None) -> Iterator[str]:
    manifest = one.manifest
    yield f"{'*' if one.current else ' '} {one.number:<5}"
    if manifest is None:
        yield f"damaged: {one.damage}"
        return
    yield f"{manifest.created}  {manifest.storage:<6}{manifest.rows:>9} rows "
    yield f"({', '.join(f'{split.name} {split.rows}' for split in manifest.splits)}),"
    yield f"{manifest.shards} shards, {bytes_text(manifest.bytes)}"
    changed = recipe_changes(older.manifest if older else None, manifest)
    if changed:
        yield f"- {', '.join(changed)} changed"
