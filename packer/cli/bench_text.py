"""The text that `packer bench` prints: a table, the recommendation with its reason, the code to paste."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from packer.bench.recommend import LoaderResult, by_batch
from packer.bench.run import BenchResult
from packer.bench.settings import LOADER, SLOTS, STOCK, LoaderSettings
from packer.bench.workload import MEMORY, ROWS, SHARED, TIME, Skipped
from packer.cli.text_table import text_table
from packer.cli.values import bytes_text
from packer.cli.version import kernels_text
from packer.errors import counted
from readers.contract.fields import LABEL
from readers.contract.tiles import size_text
from readers.dataset import SegDataset

NAMES = {LOADER: "loader()", SLOTS: "SlotDataLoader", STOCK: "DataLoader"}
GIB, WIDTH = 1 << 30, 120
WARM, COLD = 0.9, 0.1
"""Above and below these parts in memory, a split is called warm and cold."""
UNSTEADY = 1.3
"""If the copy loop's rates differ by this factor, other programs are using the machine."""
HEAD = ("", "batch", "threads", "workers", "samples/s", "least", "most", "MB/s", "of copy", "ms/batch", "memory", "")


def text(result: BenchResult, best: LoaderResult, target: float | None) -> str:
    """Return everything to print."""
    skipped = skipped_lines(result)
    advice = (f"Recommended: {reason(result, best, target)}", *warnings(result, target))
    parts = [
        about(result),
        text_table([HEAD, *rows(result, best, target)], left=(0, len(HEAD) - 1)),
        ["Not tried:", *(f"  {line}" for line in skipped)] if skipped else [],
        [line for paragraph in advice for line in wrap(paragraph, WIDTH)],
        [f"    {line}".rstrip() for line in code(result, best.settings)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def about(result: BenchResult) -> list[str]:
    """Describe the pack, the machine, the first pass and the trials."""
    dataset, machine, first_pass = result.dataset, result.machine, result.first_pass
    size = "x".join(map(str, dataset.fields[0].size or ())) or "their own sizes"
    crop = f", cut to {size_text(result.request.crop)}" if result.request.crop else ""
    quota = f", limited to {machine.quota:g} by a quota" if machine.quota is not None else ""
    return [
        f"{result.request.out}, {dataset.split}: {counted(len(dataset), 'row')} of {size}{crop}, {_read(dataset)}, "
        f"{bytes_text(result.workload.row_bytes)} each; {bytes_text(result.bytes)} of {dataset.manifest.storage}",
        f"{machine.affinity} cores{quota}; {bytes_text(machine.available)} of {bytes_text(machine.memory)} of memory "
        f"and {bytes_text(machine.shared)} of /dev/shm free",
        kernels_text(),
        f"first pass, {_warmth(first_pass.cached)}: {counted(first_pass.rows, 'row')} at "
        f"{_rates(result, first_pass.rate)}",
        f"then {'all' if result.workload.complete else 'only these'} rows from memory, {result.trial_seconds:.2f} s "
        f"for each setting in {counted(len(result.copy_rates), 'round')}:",
    ]


def _read(dataset: SegDataset) -> str:
    """Return the fields that are read, if not all of them, and the form of labels."""
    names = [f"labels as {dataset.label}" if field.name == LABEL else f"{field.name}s" for field in dataset.fields]
    return names[-1] if len(names) == len(dataset.manifest.fields) else f"only {' and '.join(names)}"


def _warmth(cached: float | None) -> str:
    if cached is None:
        return "warm or cold (the kernel reports this only to users who may write the files)"
    word = "partly cold"
    if cached > WARM:
        word = "warm"
    elif cached < COLD:
        word = "cold"
    return f"{word} ({100 * cached:.0f} % were in memory)"


def _rates(result: BenchResult, rate: float) -> str:
    return f"{_number(rate)} samples/s, {_number(rate * result.workload.row_bytes / 1e6)} MB/s"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rows(result: BenchResult, best: LoaderResult, target: float | None) -> list[tuple[str, ...]]:
    """Return the rows of the table: the copy loop, then every loader. The last column marks the cheapest ones."""
    cheap = by_batch(result.loaders, target).values()
    marks = {id(loader): f"cheapest of {loader.settings.batch}" for loader in cheap} | {id(best): "recommended"}
    copies = _spread(result, result.copy_rates)
    table: list[tuple[str, ...]] = [("copy loop", "", str(result.machine.cores), "", *copies, "1", "", "", "")]
    for loader in result.loaders:
        settings = loader.settings
        counts = (str(settings.workers), "") if settings.kind == LOADER else ("", str(settings.workers))
        figures = f"{loader.ratio:.2f}", f"{milliseconds(result, loader):.3g}"
        memory = bytes_text(result.workload.memory(settings))
        name, rates = NAMES[settings.kind], _spread(result, loader.rates)
        table.append((name, str(settings.batch), *counts, *rates, *figures, memory, marks.get(id(loader), "")))
    return table


def _spread(result: BenchResult, rates: Sequence[float]) -> list[str]:
    """Return the median rate, the least, the most, and the median in MB/s."""
    middle = statistics.median(rates)
    return [_number(rate) for rate in (middle, min(rates), max(rates), middle * result.workload.row_bytes / 1e6)]


def milliseconds(result: BenchResult, loader: LoaderResult) -> float:
    """Return the time from one batch to the next."""
    return 1000 * result.workload.batch_rows(loader.settings) / loader.rate


def reason(result: BenchResult, best: LoaderResult, target: float | None) -> str:
    """Describe the recommended loader and the reason."""
    fastest = max(result.loaders, key=lambda loader: loader.rate)
    if target is not None and best.rate >= target:
        why = f"it is the cheapest that delivers {_number(target)} samples/s"
    elif best is fastest:
        why = "nothing is faster" if len(result.loaders) > 1 else "nothing else was tried"
    else:
        why = f"the best, {_words(fastest.settings)} at {_number(fastest.rate)}, is not faster by more than 5 % or by "
        why += "more than its own rounds differ, and this is the cheapest one for which this is true"
    spread = f"{_number(min(best.rates))} to {_number(max(best.rates))} in {counted(len(best.rates), 'round')}"
    rate = f"{_rates(result, best.rate)} ({spread}), {100 * best.ratio:.0f} % of the copy loop's rate"
    step = f"A training step that takes longer than {milliseconds(result, best):.2g} ms will not wait for data."
    return f"{_words(best.settings)}: {rate}; {why}. {step}"


def _words(settings: LoaderSettings) -> str:
    if settings.kind == LOADER:
        return f"batches of {settings.batch} by {counted(settings.workers, 'thread')}"
    processes = f"{settings.workers} worker process{'es' * (settings.workers != 1)}"
    return f"batches of {settings.batch} by a {settings.kind} with {processes if settings.workers else 'no workers'}"


def warnings(result: BenchResult, target: float | None) -> list[str]:
    """Name the reasons why a training may be slower than the measured rates."""
    lines, rate = [], max(loader.rate for loader in result.loaders)
    if target is not None and rate < target:
        lines.append(
            f"Nothing here delivers the target of {_number(target)} samples/s: the best reaches "
            f"{100 * rate / target:.0f} % of it. Smaller images, labels as index, or more cores would help."
        )
    if max(result.copy_rates) > UNSTEADY * min(result.copy_rates):
        lines.append(
            f"The copy loop itself ran at {_number(min(result.copy_rates))} to {_number(max(result.copy_rates))} "
            "samples/s: other programs use this machine, too, so small differences mean little. Measure again when it "
            "is idle."
        )
    if result.larger_than_memory:
        sizes = f"{bytes_text(result.bytes)} of {bytes_text(result.machine.memory)}"
        lines.append(
            f"The split is larger than memory ({sizes}), so the rates from memory do not apply: every epoch reads from "
            "the disk, at the rate of the first pass if that was cold."
        )
    elif result.first_pass.cached is not None and result.first_pass.cached < WARM:
        lines.append(
            "The first epoch reads from the disk, at about the rate of the first pass; later ones read from memory."
        )
    return lines


def skipped_lines(result: BenchResult) -> list[str]:
    """Return a line for the skipped settings of each loader and batch size, with the reason."""

    def group_of(skipped: Skipped) -> tuple[str, str, int]:
        return skipped.reason, skipped.settings.kind, skipped.settings.batch

    lines = []
    for (why, kind, batch), group in groupby(sorted(result.skipped, key=group_of), group_of):
        skipped = list(group)
        counts = ", ".join(str(skip.settings.workers) for skip in skipped)
        most = max(skipped, key=lambda skip: skip.needed)
        needed, available = bytes_text(most.needed), bytes_text(most.available)
        reasons = {
            SHARED: f"needs up to {needed} of /dev/shm, which has {available}; give a container more with "
            f"--shm-size={-(-int(most.needed) // GIB)}g",
            MEMORY: f"needs up to {needed} of memory; half of the free memory is {available}",
            ROWS: f"the first pass read only {most.available:.0f} rows; use more --seconds",
            TIME: "there was no time for it; use more --seconds",
        }
        unit = "threads" if kind == LOADER else "workers"
        lines.append(f"{NAMES[kind]}, batches of {batch}, {unit} {counts}: {reasons[why]}")
    return lines


def code(result: BenchResult, settings: LoaderSettings) -> list[str]:
    """Return the lines of Python that make the loader."""
    dataset, crop = result.dataset, result.request.crop
    name = dataset.split if dataset.split in ("train", "val", "test") else "dataset"
    out, split = (json.dumps(str(value), ensure_ascii=False) for value in (result.request.out, dataset.split))
    opened, imports = f"{out}, split={split}", ["open_dataset"]
    if dataset.label is not None and dataset.label != dataset.manifest.field(LABEL).form:
        opened += f', label="{dataset.label}"'
    if result.request.fields:
        opened += f", fields={result.request.fields!r}"
    options = f"batch_size={settings.batch}, shuffle=True"
    if settings.kind == LOADER:
        options += f", threads={settings.workers}, ahead={settings.ahead}" + (f", crop={crop}" if crop else "")
        made = f"{name}.loader({options})"
    else:
        options += f", num_workers={settings.workers}" + ", persistent_workers=True" * bool(settings.workers)
        opened += f", transform=RandomCrop({crop})" if crop else ""
        if crop:
            imports.append("RandomCrop")
        if settings.kind == SLOTS:
            imports.append(SLOTS)
        made = f"{settings.kind}({name}, {options})"
    lines = ["from torch.utils.data import DataLoader"] if settings.kind == STOCK else []
    return [
        *lines,
        f"from readers import {', '.join(sorted(imports))}",
        "",
        f"{name} = open_dataset({opened})",
        f"loader = {made}",
    ]
