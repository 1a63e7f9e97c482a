"""`packer diagnose`: find out what a training script waits for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from packer.cli.loading import loading
from packer.cli.output import show
from packer.errors import UsageError
from packer.signals import no_hurry
from readers.contract.errors import RequestError

if TYPE_CHECKING:
    from readers.diagnosis.record import Record


@click.command(
    "diagnose",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="Interrupt the script after this time, as Ctrl-C does."
)
@click.option("--report", type=click.Path(path_type=Path), help="Write a page (.html) or all numbers (.json).")
@click.option(
    "--json", "as_json", is_flag=True, help="Print all numbers as JSON. The output of the script goes to stderr."
)
@click.pass_context
def diagnose_command(
    ctx: click.Context, command: tuple[str, ...], seconds: float | None, report: Path | None, as_json: bool
) -> None:
    """Run COMMAND, which starts your training. At its end, report what its steps waited for, and what to change.

    It watches every DataLoader and every loader of this package: how long each step waited for data, copied and
    computed, and how busy CPUs, disk and GPU were. The script needs no change. The verdict is printed to stderr; the
    exit code comes from the script. In your own loop, `with readers.watch(loader) as batches:` does the same.

    \b
    Example:
      packer diagnose --report waits.html -- python train.py
      packer diagnose --seconds 120 -- torchrun --nproc-per-node 4 train.py --epochs 100
    """
    with loading():
        from packer.diagnose import Watched
        from readers.diagnosis.report import check_report
    if report is not None:
        try:
            check_report(report)
        except RequestError as error:
            raise UsageError(f"--report {error}") from error
    with TemporaryDirectory(prefix="segpack-diagnose-") as folder:
        watched = Watched.start(command, Path(folder), sys.stderr.fileno() if as_json else None)
        try:
            code = watched.wait(seconds)
        except KeyboardInterrupt:
            with no_hurry():
                watched.end()
                _report(watched.records(), report, as_json)
            raise
        _report(watched.records(), report, as_json)
    ctx.exit(code)


def _report(records: list[Record], report: Path | None, as_json: bool) -> None:
    with loading():
        from readers.diagnosis.report import to_json, write_report
        from readers.diagnosis.verdict import verdict
    if as_json:
        show(json.dumps(to_json(records), indent=1))
    if not records:
        show(
            "packer diagnose: no training step was recorded: the command did not iterate a DataLoader or a loader of "
            "this package; in your own loop, use readers.watch",
            err=True,
        )
        return
    show(f"\n{verdict(records[0])}", err=True)
    if len(records) > 1:
        show(f"  ({len(records) - 1} other loaders delivered batches; this one took most of the time)", err=True)
    if report is not None:
        write_report(report, records)
        show(f"{report}: written", err=True)
