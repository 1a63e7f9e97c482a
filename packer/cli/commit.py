"""`packer commit`: publish the parts of a plan."""

from __future__ import annotations

import json
from pathlib import Path

import click

from packer.cli.build import log_summary
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import join_lines, show
from packer.cli.progress import shown
from packer.cli.publishing import publishing
from packer.cli.store_options import no_conditions_option, scratch_option
from packer.cli.values import FolderType, PackType
from packer.config.options import LOG_FORMATS

MISSING = 1


@click.command("commit")
@click.option(
    "--plan", type=FolderType("copy the plan to this machine"), required=True, help="The folder that packer plan wrote."
)
@click.argument("out", type=PackType())
@click.option("--missing", is_flag=True, help="Print the parts that must run again, one a line, and stop.")
@scratch_option
@no_conditions_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default=LOG_FORMATS[0], help="Format of stderr.")
@click.pass_context
def commit_command(
    ctx: click.Context,
    plan: Path,
    out: Path | str,
    missing: bool,
    scratch: Path | None,
    no_conditions: str,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Check that every shard of a plan is in OUT, and publish the pack.

    Rejects and findings are judged by the options of the plan, as packer build does. If a shard
    is missing, nothing is published. Running it again changes nothing.

    With --missing: exit 0 if no part is missing, 1 if some are.

    \b
    Example:
      packer commit --plan plan/ out/
      for part in $(packer commit --plan plan/ --missing out/); do
        packer build-part --plan plan/ --part $part out/
      done
    """
    with loading():
        from packer.building.commit_plan import commit_pack, missing_parts
        from packer.cli.build_text import summary_json, summary_text
        from readers.stores.open_store import open_store
    LOG.form = log_format
    if missing:
        parts = [str(part) for part in missing_parts(plan, out, scratch)]
        if parts or as_json:
            show(json.dumps({"missing": parts}, indent=1) if as_json else join_lines(parts))
        ctx.exit(MISSING if parts else 0)
    with publishing(out if isinstance(out, Path) else open_store(out)):
        summary = commit_pack(plan, out, scratch=scratch, no_conditions=no_conditions, progress=shown(quiet))
    log_summary(summary)
    show(json.dumps(summary_json(summary), indent=1) if as_json else summary_text(summary, out))
