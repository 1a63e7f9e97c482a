"""`packer bench`: how fast a pack reads on this machine, and the call that reads it best."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.bench.settings import Sweep, cheapest
from packer.cli.log import LOG
from packer.cli.progress import progress
from packer.cli.values import CropType, NumbersType
from packer.errors import InputError, TargetError, UsageError
from packer.publish.atomic import put_text
from packer.recipe.recipe import LABEL_FORMS
from readers.contract.manifest import Manifest
from readers.machine import Machine

if TYPE_CHECKING:
    from packer.bench.run import FirstPass

REPORTS = (".html", ".svg")


@click.command("bench", short_help="Measure how fast a pack reads here, and say which loader to use.")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--split", help="The split to read, or all. Default: train, or the first.")
@click.option(
    "--batch", "batches", type=NumbersType(1), multiple=True, help="Sizes of batches: 8,16. Default: 4,8,16,32,64."
)
@click.option(
    "--threads", type=NumbersType(1), multiple=True, help="Threads of a loader. Default: 1, 2, 4 … all cores."
)
@click.option(
    "--workers",
    type=NumbersType(0),
    multiple=True,
    help="Worker processes of DataLoaders, tried at all sizes. Default: 0 and up to 4 at one size, to compare.",
)
@click.option("--labels", type=click.Choice(LABEL_FORMS), help="As what labels are delivered. Default: as stored.")
@click.option("--crop", type=CropType(), help="Cut this height x width out of each picture; native packs need it.")
@click.option("--seconds", type=click.FloatRange(1), default=30, show_default=True, help="How long it takes in all.")
@click.option("--target", type=click.FloatRange(0, min_open=True), help="Samples a second that the model needs.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a page (.html) or the plot (.svg).")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def bench_command(
    out: Path, target: float | None, report: Path | None, as_json: bool, quiet: bool, **asked: Any
) -> None:
    """Measure how fast batches come out of OUT on this machine, by how many threads, and say which loader to use.

    Every setting takes its turn in rounds, next to a loop that only copies the same rows. Recommended is the cheapest
    setting within 5 % of the best; with --target, the cheapest that is fast enough.

    \b
    Example:
      packer bench out/
      packer bench --batch 16 --seconds 60 --report bench.html out/
      packer bench --json out/ | jq .recommended
    """
    started = time.perf_counter()
    Manifest.load(out)
    if report is not None:
        _check_report(report)
    # PyTorch takes a second to import, which no other command needs.
    from packer.bench.run import Question, answer
    from packer.cli.bench_json import facts
    from packer.cli.bench_page import html, svg
    from packer.cli.bench_text import not_tried, text

    question = Question(out, **(asked | {name: _flat(asked[name]) for name in ("batches", "threads", "workers")}))
    with ExitStack() as stack:

        def begin(first: FirstPass, sweep: Sweep) -> Callable[[int], None]:
            if not quiet:
                rate = f"{first.rows} rows at {first.rate:,.0f} samples/s"
                plan = f"{len(sweep.settings)} settings in {sweep.rounds} rounds, {sweep.seconds:.2f} s each"
                LOG.say("planned", f"first pass: {rate}; now {plan}")
            return stack.enter_context(progress("measuring", sweep.trials, "trials", quiet))

        left = question.seconds - (time.perf_counter() - started)
        found = answer(replace(question, seconds=max(question.seconds / 2, left)), Machine.look(), begin)
    if not found.trials:
        raise InputError(f"{out}: nothing could be tried", not_tried(found))
    best = cheapest(found.trials, target)
    click.echo(json.dumps(facts(found, best, target), indent=1) if as_json else text(found, best, target))
    if report is not None:
        put_text((svg if report.suffix == ".svg" else html)(found, best, target), report.absolute())


def _check_report(report: Path) -> None:
    """Before anything is measured."""
    if report.suffix not in REPORTS:
        raise UsageError(f"--report {report}: expected a name that ends with {' or '.join(REPORTS)}")
    if not report.absolute().parent.is_dir():
        raise TargetError(f"{report.parent}: there is no such folder for the report")


def _flat(lists: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """All numbers of some lists, in order."""
    return tuple(sorted({number for some in lists for number in some}))
