"""`packer build-part`: a part of the shards of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import STDOUT, show
from packer.cli.progress import shown
from packer.cli.values import FolderType, PackType, bytes_text
from packer.config.options import LOG_FORMATS, OPTIONS
from packer.errors import UsageError, counted

if TYPE_CHECKING:
    from packer.building.plan_parts import PartSummary


class PartCommand(click.Command):
    """The options of a build are in the plan, so this command has none of them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if error.option_name.removeprefix("--") in OPTIONS:
                raise UsageError(f"{error.option_name}: the plan has it; make a new plan with packer plan") from None
            raise


@click.command("build-part", cls=PartCommand)
@click.option(
    "--plan",
    type=FolderType("copy the plan to this machine"),
    required=True,
    help="The folder that packer plan wrote.",
)
@click.option("--part", required=True, metavar="I/N", help="The part to build, from 1/N to N/N.")
@click.option(
    "--raw", type=click.Path(path_type=Path), help="Where RAW is on this machine, if not where packer plan read it."
)
@click.argument("out", type=PackType())
@click.option("--scratch", type=click.Path(path_type=Path), envvar="PACKER_SCRATCH", help=OPTIONS["scratch"].help)
@click.option("--workers", type=click.IntRange(1), envvar="PACKER_WORKERS", help=OPTIONS["workers"].help)
@click.option("--retry-bad", is_flag=True, help=OPTIONS["retry-bad"].help)
@click.option(
    "--allow-functions",
    "modules",
    metavar="MODULE",
    multiple=True,
    help="Functions of this module may give the rows. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, envvar="PACKER_QUIET", help=OPTIONS["quiet"].help)
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    default=LOG_FORMATS[0],
    envvar="PACKER_LOG_FORMAT",
    help=OPTIONS["log-format"].help,
)
def build_part_command(
    plan: Path,
    part: str,
    raw: Path | None,
    out: Path | str,
    scratch: Path | None,
    workers: int | None,
    retry_bad: bool,
    modules: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Build a part of the shards of a plan into OUT: on any machine, in any order, any number of times.

    packer commit publishes the pack when all parts were built. The options of the build are in the plan.

    \b
    Example:
      packer plan --size 512x512 raw/ plan/
      packer build-part --plan plan/ --part 1/2 out/
      packer build-part --plan plan/ --part 2/2 out/
      packer commit --plan plan/ out/
    """
    with loading(workers=True):
        from packer.building.plan_parts import build_part
    LOG.form, STDOUT.json = log_format, as_json
    summary = build_part(
        plan,
        part,
        out,
        raw=raw,
        workers=workers,
        retry_bad=retry_bad,
        allow_functions=modules,
        scratch=scratch,
        progress=shown(quiet),
    )
    for split, key, reason in summary.rejects:
        LOG.say("bad pair", f"bad pair  {split}/{key}: {reason}", split=split, key=key, reason=reason)
    show(json.dumps(_json(summary), indent=1) if as_json else _text(summary, out))


def _json(summary: PartSummary) -> dict[str, Any]:
    return {
        "run": LOG.run,
        "part": str(summary.part),
        "shards": summary.shards,
        "built_shards": summary.built,
        "rows": summary.rows,
        "rejects": [{"split": split, "key": key, "reason": reason} for split, key, reason in summary.rejects],
        "bytes": summary.bytes,
        "seconds": round(summary.seconds, 3),
    }


def _text(summary: PartSummary, out: Path | str) -> str:
    present, rate = summary.shards - summary.built, summary.rows / max(summary.seconds, 1e-9)
    return (
        f"{out}: part {summary.part}, {counted(summary.built, 'shard')} built, {present} were there, "
        f"{counted(summary.rows, 'row')}, {bytes_text(summary.bytes)}, "
        f"{len(summary.rejects)} bad pairs, {summary.seconds:.1f} s ({rate:.0f} rows/s)"
    )
