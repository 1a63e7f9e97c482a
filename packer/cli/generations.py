"""`packer log`, `packer rollback` and `packer gc`: the generations of a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.log import publishing
from packer.cli.output import join_lines, show
from packer.cli.values import FolderType, TimeType, bytes_text
from packer.publish.history import DEFAULT_KEEP
from packer.publish.pin import is_pinned
from readers.contract.manifest import Manifest

if TYPE_CHECKING:
    from packer.packs.generations import Generation


@click.command("log")
@click.argument("out", type=FolderType())
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def log_command(out: Path, as_json: bool) -> None:
    """List the generations that OUT has kept, the newest first. A star marks the current one.

    If the current manifest is damaged, none has a star, and the command exits 4.

    \b
    Example:
      packer log out/
    """
    with loading():
        from packer.packs.generations import list_generations
    generations, pinned = list_generations(out), is_pinned(out)
    if as_json:
        facts = [_facts(generation, pinned) for generation in generations]
        show(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        for generation in generations:
            show(join_lines([" ".join(_words(generation, pinned))]))
    Manifest.load(out)  # if it is damaged: exit 4, after the list of what it can be replaced with


@click.command("rollback")
@click.argument("out", type=FolderType())
@click.argument("number", type=click.IntRange(1))
@click.option("--pin", is_flag=True, help="Keep NUMBER current: builds exit 5 until packer unpin.")
def rollback_command(out: Path, number: int, pin: bool) -> None:
    """Make generation NUMBER of OUT the current one again. Nothing is deleted. The next build continues from there.

    The next build publishes what is in RAW then, so it may undo the rollback. With --pin it publishes nothing and
    exits 5. A rollback of a pinned pack leaves it pinned, to NUMBER.

    \b
    Example:
      packer rollback out/ 41
      packer rollback --pin out/ 41
    """
    with loading():
        from packer.packs.generations import rollback_pack
        from packer.publish.generation import current_manifest
    before = current_manifest(out)
    with publishing(out):
        manifest = rollback_pack(out, number, pinned=pin)
    was = "the manifest was damaged" if before is None else f"it was {before.generation}"
    pinned = f"; pinned: builds publish nothing until packer unpin {out}" if is_pinned(out) else ""
    show(f"{out}: generation {number} ({manifest.rows} rows) is current; {was}{pinned}")


@click.command("unpin")
@click.argument("out", type=FolderType())
def unpin_command(out: Path) -> None:
    """Remove the pin of packer rollback --pin from OUT, so that the next build publishes a generation again.

    \b
    Example:
      packer unpin out/
    """
    with loading():
        from packer.packs.generations import unpin_pack
    show(f"{out}: the pin is removed" if unpin_pack(out) else f"{out}: is not pinned; nothing to do")


@click.command("gc")
@click.argument("out", type=FolderType())
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
    with loading():
        from packer.packs.generations import delete_garbage
    garbage = delete_garbage(out, keep, grace, dry_run=dry_run)
    facts: dict[str, Any] = {
        "kept": list(garbage.kept),
        "generations": len(garbage.manifests),
        "files": [str(path.relative_to(out)) for path in garbage.paths],
        "bytes": garbage.bytes,
    }
    deleted = "would be deleted" if dry_run else "deleted"
    kept = ", ".join(map(str, garbage.kept))
    show(
        json.dumps(facts, indent=1)
        if as_json
        else f"{out}: {len(garbage.manifests)} generations and {len(garbage.paths)} files, "
        f"{bytes_text(garbage.bytes)}, {deleted}; kept {kept}"
    )


def _facts(generation: Generation, pinned: bool) -> dict[str, Any]:
    manifest = generation.manifest
    facts: dict[str, Any] = {"generation": generation.number, "current": generation.current}
    facts["pinned"] = pinned and generation.current
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


def _words(generation: Generation, pinned: bool) -> Iterator[str]:
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
    if pinned and generation.current:
        yield "- pinned"
