"""`packer repair`: damaged shards are built again from the raw files."""

from __future__ import annotations

from pathlib import Path

import click

from packer.cli.build import changing, run_build, summary_text
from packer.cli.progress import progress
from packer.cli.recorded import recorded_request
from packer.packs.repair import distrusted, forget
from packer.packs.verify import verify
from packer.plan.make_plan import make_plan
from packer.publish.target import is_ours, tidy
from packer.workers import open_engine
from readers.contract.errors import DamagedError
from readers.contract.manifest import Manifest
from readers.machine import usable_cores


@click.command("repair", short_help="Build again what is damaged.")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("raw", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), help="Options of the build. Default: those of the last one.")
@click.option("--workers", type=click.IntRange(1), help="Cores to use. Default: all.")
@click.option("--quiet", is_flag=True, help="No progress.")
def repair_command(out: Path, raw: Path, config: Path | None, workers: int | None, quiet: bool) -> None:
    """Check every byte of OUT, and build again from RAW what is damaged; what is whole is not touched.

    Where RAW is as it was, the same files come out, and the generation stays what it is. Where it is not, the next
    generation is made of what is there now.

    \b
    Example:
      packer repair out/ raw/
    """
    with changing(out):
        _repair(out, raw, config, workers, quiet)


def _repair(out: Path, raw: Path, config: Path | None, workers: int | None, quiet: bool) -> None:
    damage = _verify(out, workers, quiet)
    if is_ours(out):
        tidy(out)
    if not damage:
        click.echo(f"{out}: whole; nothing to repair")
        return
    for line in damage:
        click.echo(f"damaged   {line}", err=True)
    request, limits = recorded_request(out, raw, config)
    stems = distrusted(out, damage)
    with open_engine(request.workers, request.task_timeout) as engine:
        plan = make_plan(request, stems, engine)
        forget(out, stems)
        summary = run_build(plan, limits, quiet, engine)
    left = _verify(out, workers, quiet)
    if left:
        raise DamagedError("\n".join([f"{out}: {len(left)} problems are left", *left]))
    click.echo(f"{summary_text(summary, len(plan.pairing.missing), out)}; {out} is whole")


def _verify(out: Path, workers: int | None, quiet: bool) -> list[str]:
    try:
        total = Manifest.load(out).bytes
    except DamagedError as error:
        return [str(error)]
    with progress("verifying", total, "B", quiet) as advance:
        return verify(out, workers or usable_cores(), advance)
