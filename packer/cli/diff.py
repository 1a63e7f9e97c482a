"""`packer diff`: what a build would change in a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.cli.page import show_page
from packer.cli.values import PackType
from packer.errors import first_of
from packer.publish.target import raw_and_out

if TYPE_CHECKING:
    from packer.packs.diff import Difference

DIFFERENT = 1
MOST_NAMED = 20


@click.command("diff")
@click.argument("raw", type=click.Path(path_type=Path))
@click.argument("out", type=PackType())
@click.option(
    "--config", type=click.Path(path_type=Path), help="Options of the build. Default: the options of the last build."
)
@click.option("--json", "as_json", is_flag=True, help="Print every name, as JSON.")
@click.pass_context
def diff_command(ctx: click.Context, raw: Path, out: Path | str, config: Path | None, as_json: bool) -> None:
    """Compare RAW with the pack OUT: which pairs are new, changed or removed, which fields
    changed, and how many shards a build would write.

    Exit 0 if a build would change nothing, 1 if it would.

    \b
    Example:
      packer diff raw/ out/ || packer build raw/ out/
    """
    with loading(workers=True):
        from packer.packs.diff import diff_pack
    if isinstance(out, Path):
        raw, out = raw_and_out(raw, out)
    difference = diff_pack(out, raw, config=config)
    if as_json:
        show(json.dumps(difference.to_json(), indent=1, ensure_ascii=False))
    else:
        show_page(_text(difference))
    if not difference.is_empty:
        ctx.exit(DIFFERENT)


def _text(difference: Difference) -> Iterator[str]:
    if difference.is_empty:
        count = difference.reused_shards
        yield f"up to date: {'its only shard is' if count == 1 else f'all {count} shards are'} unchanged"
        return
    changed = [
        f"{name}: {', '.join(fields)}" if (fields := difference.fields.get(name)) else name
        for name in difference.changed
    ]
    for change, names in (("added", difference.added), ("changed", changed), ("removed", difference.removed)):
        yield from (f"{change:<10}{name}" for name in first_of(names, MOST_NAMED))
    yield from (f"recipe    {key}: {before!r} becomes {now!r}" for key, before, now in difference.recipe)
    built, kept, dropped = difference.rebuilt_shards, difference.reused_shards, difference.dropped_shards
    yield f"shards    {built} to build, {kept} unchanged, {dropped} dropped"
