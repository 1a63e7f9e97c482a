"""`packer diff`: what a build would change in a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from packer.cli.recorded import recorded_request
from packer.packs.diff import Difference, difference
from packer.plan.make_plan import make_plan

DIFFERENT = 1
MOST_NAMED = 20


@click.command("diff", short_help="What a build would change.")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("raw", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), help="Options of the build. Default: those of the last one.")
@click.option("--json", "as_json", is_flag=True, help="Every name, as JSON.")
@click.pass_context
def diff_command(ctx: click.Context, out: Path, raw: Path, config: Path | None, as_json: bool) -> None:
    """Compare RAW with what is packed in OUT: which pairs are new, changed or gone, and how many shards that costs.

    Exit 0 when a build would leave everything as it is, 1 when not.

    \b
    Example:
      packer diff out/ raw/ || packer build raw/ out/
    """
    request, _ = recorded_request(out, raw, config)
    found = difference(make_plan(request))
    click.echo(json.dumps(found.to_json(), indent=1, ensure_ascii=False) if as_json else "\n".join(_text(found)))
    if not found.nothing:
        ctx.exit(DIFFERENT)


def _text(found: Difference) -> Iterator[str]:
    if found.nothing:
        yield f"nothing to do; all {found.reused_shards} shards are as they would be"
        return
    for what, names in (("added", found.added), ("changed", found.changed), ("removed", found.removed)):
        yield from (f"{what:<10}{name}" for name in names[:MOST_NAMED])
        if len(names) > MOST_NAMED:
            yield f"{'':<10}… {len(names)} in all"
    yield from (f"recipe    {key}: {before!r} becomes {now!r}" for key, before, now in found.recipe)
    built, kept, dropped = found.rebuilt_shards, found.reused_shards, found.dropped_shards
    yield f"shards    {built} to build, {kept} as they are, {dropped} dropped"
