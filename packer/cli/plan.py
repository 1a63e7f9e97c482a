"""`packer plan`: a build as files, whose shards any machine can build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.build import log_notes
from packer.cli.configured import SETTINGS, ConfiguredCommand
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import bytes_text
from packer.errors import UsageError, counted

if TYPE_CHECKING:
    from packer.config.config import Settings


@click.command("plan", cls=ConfiguredCommand)
@click.option("--reuse", metavar="PACK", help="Do not build shards of this pack again if their rows did not change.")
@click.option("--part", metavar="I/N", help="Only read a part of the headers, which the plan without --part then has.")
@click.pass_context
def plan_command(ctx: click.Context, /, **options: Any) -> None:
    """Plan a build of RAW, and write the plan into the new folder OUT. No shard is built.

    It has the options of packer build. Any machine that has RAW can then build any part of
    the plan, in any order and any number of times, and packer commit publishes the pack.

    \b
    Example:
      packer plan --size 512x512 raw/ plan/
      packer build-part --plan plan/ --part 1/2 out/
      packer build-part --plan plan/ --part 2/2 out/
      packer commit --plan plan/ out/
    """
    with loading(workers=True):
        from packer.building.plan_build import plan_from
        from packer.building.read_part import read_part
        from packer.cli.build_text import plan_json, plan_notes, plan_text
        from packer.plan.request import Request
    settings: Settings = ctx.meta[SETTINGS]
    LOG.form, folder, quiet = str(settings["log-format"]), Path(str(settings["out"])), bool(settings["quiet"])
    if settings["follow"]:
        raise UsageError("--follow: is for packer build; a plan has the rows that are there now")
    if options["part"] is not None:
        rows = read_part(Request.from_settings(settings), options["part"], options["reuse"], shown(quiet))
        facts = {"plan": str(folder), "part": options["part"], "rows": rows}
        show(
            json.dumps(facts) if settings["json"] else f"{folder}: {options['part']}, headers of {rows:,} rows read now"
        )
        return
    plan, sha256 = plan_from(Request.from_settings(settings), options["reuse"], shown(quiet))
    if settings["json"]:
        show(json.dumps({"plan": str(folder), "sha256": sha256, **plan_json(plan)}, indent=1))
    elif settings["dry-run"]:
        show(plan_text(plan))
    else:
        log_notes([] if quiet else plan_notes(plan))
        show(
            f"{folder}: plan {str(sha256)[:16]}, {counted(plan.pairs, 'pair')}, "
            f"{counted(len(plan.specs), 'shard')} ({len(plan.reused)} of them exist already), {bytes_text(plan.bytes)}"
        )
