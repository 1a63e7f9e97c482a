"""`packer build --plan`: a part of the shards of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.configured import ConfiguredCommand
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import STDOUT, show
from packer.cli.progress import shown
from packer.cli.values import FolderType, PackType, bytes_text
from packer.config.options import LOG_FORMATS
from packer.errors import UsageError, counted

if TYPE_CHECKING:
    from packer.building.plan_parts import PartSummary

PLAN = "--plan"


class BuildCommand(ConfiguredCommand):
    """With --plan it has no options of a build: those are in the plan."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if not any(arg.partition("=")[0] == PLAN for arg in args):
            return super().make_context(info_name, args, parent, **extra)
        try:
            return part_command.make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if any(error.option_name in param.opts for param in self.params):
                raise UsageError(f"{error.option_name}: the plan has it; make a new plan with packer plan") from None
            raise


@click.command("build")
@click.option(PLAN, type=FolderType("copy the plan to this machine"), required=True)
@click.option("--part", required=True, metavar="I/N")
@click.option("--raw", type=click.Path(path_type=Path))
@click.argument("out", type=PackType())
@click.option("--scratch", type=click.Path(path_type=Path), envvar="PACKER_SCRATCH")
@click.option("--workers", type=click.IntRange(1), envvar="PACKER_WORKERS")
@click.option("--retry-bad", is_flag=True)
@click.option("--allow-functions", "modules", multiple=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--quiet", is_flag=True, envvar="PACKER_QUIET")
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default=LOG_FORMATS[0], envvar="PACKER_LOG_FORMAT")
def part_command(
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
    """Build a part of a plan. The help of packer build has these options."""
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


def refuse_without_plan(options: dict[str, Any]) -> None:
    """Raise UsageError if options of a part were given for a whole build."""
    for name, option in {"part": "--part", "raw_here": "--raw", "modules": "--allow-functions"}.items():
        if options.get(name):
            raise UsageError(f"{option}: belongs to --plan, the folder that packer plan wrote")


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
