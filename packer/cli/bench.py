"""`packer bench`: measure how fast a pack reads on this machine, and recommend a loader."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from packer.cli.configured import ChoiceType
from packer.cli.loading import loading
from packer.cli.log import LOG
from packer.cli.output import show
from packer.cli.progress import shown
from packer.cli.values import CropType, FolderType, NamesType, NumbersType
from packer.config.options import OPTIONS
from packer.errors import InputError, UsageError, counted
from readers.contract.errors import NoPackError
from readers.contract.manifest import Manifest

if TYPE_CHECKING:
    from packer.bench.request import BenchRequest
    from packer.bench.run import FirstPass

BYTES_BEFORE = ". The bytes in each encoding are known before: packer build --dry-run RAW OUT"


@click.command("bench")
@click.argument("out", type=FolderType())
@click.option("--split", help="The split to read, or all. Default: train, or the first.")
@click.option(
    "--batch", "batches", type=NumbersType(1), multiple=True, help="Batch sizes: 8,16. Default: 4,8,16,32,64."
)
@click.option(
    "--threads", type=NumbersType(1), multiple=True, help="Threads of a loader. Default: 1, 2, 4 … all cores."
)
@click.option(
    "--workers",
    type=NumbersType(0),
    multiple=True,
    help="Worker processes of DataLoaders, at all batch sizes. Default: 0 and up to 4 at one batch size, to compare.",
)
@click.option("--labels", type=ChoiceType(OPTIONS["labels"]), help="The form of the labels. Default: as stored.")
@click.option("--fields", type=NamesType(), help="The fields to read: label, or label,image. Default: image,label.")
@click.option(
    "--crop",
    type=CropType(),
    help="Crop images to height x width, volumes to depth x height x width. Rows of their own sizes need it.",
)
@click.option("--seconds", type=click.FloatRange(1), default=30, show_default=True, help="Total time to measure.")
@click.option("--target", type=click.FloatRange(0, min_open=True), help="Samples per second that the model needs.")
@click.option("--encodings", is_flag=True, help="Compare encodings instead: bytes, and samples per second.")
@click.option("--augment", is_flag=True, help="Compare steps instead: what flips, scales, colours and numbers cost.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def bench_command(
    out: Path,
    target: float | None,
    encodings: bool,
    augment: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure how fast loaders deliver batches of OUT on this machine, and recommend one.

    All settings run in turns, next to a loop that only copies the same rows. The recommendation is the cheapest setting
    within 5 % of the best; with --target, the cheapest that is fast enough.

    With --encodings, some rows of OUT are packed again into a temporary folder: raw, with labels as zstd, with pictures
    as JPEG. These packs are read in turns by the same loader. OUT is a pack: for a folder of pictures, packer build
    --dry-run prints the bytes in each encoding. With --augment, one loader reads in turns with each option that flips,
    scales, colours or normalises, and with all.

    \b
    Example:
      packer bench out/
      packer bench --batch 16 --seconds 60 out/
      packer bench --json out/ | jq .recommended
      packer bench --encodings --batch 16 --threads 4 out/
      packer bench --encodings --crop 512x512 native/
      packer bench --augment --crop 512x512 --batch 16 out/
    """
    try:
        Manifest.load(out)
    except NoPackError as error:
        raise NoPackError(f"{error}{BYTES_BEFORE * encodings}") from error
    with loading():
        from packer.bench.recommend import cheapest
        from packer.bench.request import BenchRequest
        from packer.bench.run import run_bench
        from packer.cli.bench_json import facts
        from packer.cli.bench_text import skipped_lines, text
        from readers.machine import Machine
    request = BenchRequest(out, **options | {name: _flat(options[name]) for name in ("batches", "threads", "workers")})
    if encodings or augment:
        name = "--encodings" if encodings else "--augment"
        if target is not None or (encodings and augment):
            raise UsageError(f"{name}: has no {'--augment' if target is None else '--target'}; leave it out")
        (_compare_encodings if encodings else _compare_steps)(request, as_json, quiet)
        return

    def log(first_pass: FirstPass) -> None:
        if not quiet:
            LOG.say("planned", f"first pass: {counted(first_pass.rows, 'row')} at {first_pass.rate:,.0f} samples/s")

    result = run_bench(request, Machine.look(), progress=shown(quiet), after_first_pass=log)
    if not result.loaders:
        raise InputError(f"{out}: there was no loader to try", skipped_lines(result))
    best = cheapest(result.loaders, target)
    show(json.dumps(facts(result, best, target), indent=1) if as_json else text(result, best, target))


def _compare_steps(request: BenchRequest, as_json: bool, quiet: bool) -> None:
    """Read rows with each step of a loader."""
    with loading(workers=True):
        from packer.bench.augment import measure_steps
        from packer.cli.bench_augment import augment_json, augment_text
    settings, runner, results = measure_steps(request, shown(quiet))
    facts = augment_json(request, settings, len(runner.rows), results)
    show(json.dumps(facts, indent=1) if as_json else augment_text(request, facts))


def _compare_encodings(request: BenchRequest, as_json: bool, quiet: bool) -> None:
    """Read trial packs in each encoding."""
    with loading(workers=True):
        from packer.bench.encodings import EncodingResult, loader_settings, read_in_turns
        from packer.bench.loaders import TrialRunner
        from packer.cli.bench_encodings import encodings_json, encodings_text
        from packer.packs.trial_packs import trial_packs
        from packer.publish.free_space import free_memory
        from readers.machine import Machine
    whole, progress, memory = Manifest.load(request.out), shown(quiet), free_memory()
    with trial_packs(request.out, TrialRunner(request).pack_rows, progress) as packs:
        trials = [Manifest.load(path) for _, path in packs]
        settings = loader_settings(request, Machine.look(), trials[0].rows)
        rates = read_in_turns(request, [path for _, path in packs], settings, progress)
    results = []
    for number, (way, trial, measured) in enumerate(zip((way for way, _ in packs), trials, rates, strict=True)):
        size = round(trial.bytes / trial.rows * whole.rows) if number else whole.bytes
        results.append(EncodingResult(way, trial.bytes / trial.rows, size, size <= memory, measured))
    facts = encodings_json(request, trials[0].rows, settings, memory, results)
    show(json.dumps(facts, indent=1) if as_json else encodings_text(request, facts, results))


def _flat(lists: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Return the numbers of all lists, each once, in order."""
    return tuple(sorted({number for numbers in lists for number in numbers}))
