"""`packer log`, `packer rollback` and `packer unpin`: the generations of a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.output import join_lines, show
from packer.cli.publishing import publishing
from packer.cli.store_options import no_conditions_option
from packer.cli.values import PackType, bytes_text
from packer.errors import counted
from packer.publish.pin import is_pinned
from readers.contract.manifest import Manifest

if TYPE_CHECKING:
    from packer.packs.generations import Generation


@click.command("log")
@click.argument("out", type=PackType())
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def log_command(out: Path | str, as_json: bool) -> None:
    """List the generations that OUT has kept, the newest first. A star marks the current one.

    If the current manifest is damaged, none has a star, and the command exits 4.

    \b
    Example:
      packer log out/
      packer log s3://bucket/out
    """
    with loading():
        from packer.packs.generations import list_generations
        from packer.packs.stored import seen
    with seen(out, holes=()) as (folder, _):
        generations, pinned = list_generations(folder), is_pinned(folder)
        if as_json:
            facts = [_facts(generation, pinned) for generation in generations]
            show(json.dumps(facts, indent=1, ensure_ascii=False))
        else:
            for generation in generations:
                show(join_lines([" ".join(_words(generation, pinned))]))
        Manifest.load(folder)  # if it is damaged: exit 4, after the list of what it can be replaced with


@click.command("rollback")
@click.argument("out", type=PackType())
@click.argument("number", type=click.IntRange(1))
@click.option("--pin", is_flag=True, help="Keep NUMBER current: builds exit 5 until packer unpin.")
@no_conditions_option
def rollback_command(out: Path | str, number: int, pin: bool, no_conditions: str) -> None:
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
        from readers.stores.open_store import open_store
    store = open_store(out)
    before = current_manifest(store)
    with publishing(store):
        manifest = rollback_pack(out, number, pinned=pin, no_conditions=no_conditions)
    was = "the manifest was damaged" if before is None else f"it was {before.generation}"
    pinned = f"; pinned: builds publish nothing until packer unpin {out}" if is_pinned(store) else ""
    show(f"{out}: generation {number} ({counted(manifest.rows, 'row')}) is current; {was}{pinned}")


@click.command("unpin")
@click.argument("out", type=PackType())
def unpin_command(out: Path | str) -> None:
    """Remove the pin of packer rollback --pin from OUT, so that the next build publishes a generation again.

    \b
    Example:
      packer unpin out/
    """
    with loading():
        from packer.packs.generations import unpin_pack
    show(f"{out}: the pin is removed" if unpin_pack(out) else f"{out}: is not pinned; nothing to do")


def _facts(generation: Generation, pinned: bool) -> dict[str, Any]:
    manifest = generation.manifest
    facts: dict[str, Any] = {"generation": generation.number, "current": generation.current}
    facts["pinned"] = pinned and generation.current
    facts["was_current"] = generation.was_current
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
    yield f"{counted(manifest.shards, 'shard')}, {bytes_text(manifest.bytes)}"
    if generation.changed:
        yield f"- {', '.join(generation.changed)} changed"
    if pinned and generation.current:
        yield "- pinned"
    if not generation.was_current:
        yield "- never current"
