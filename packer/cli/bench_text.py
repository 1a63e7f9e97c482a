"""What `packer bench` says: a table, a recommendation with its reason, and the code to paste."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from packer.bench.run import Answer
from packer.bench.settings import LOADER, MEMORY, NEAR, ROWS, SHARED, SLOTS, STOCK, LeftOut, Setting, Trial, by_batch
from packer.cli.values import bytes_text

NAMES = {LOADER: "loader()", SLOTS: "SlotDataLoader", STOCK: "DataLoader"}
GIB, WIDTH = 1 << 30, 120
WARM, COLD = 0.9, 0.1
"""What is called so, by the part that is in memory."""
UNSTEADY = 1.3
"""A machine whose copy loop varies by so much does something else as well."""
HEAD = ("", "batch", "threads", "workers", "samples/s", "least", "most", "MB/s", "of copy", "ms/batch", "memory", "")


def text(found: Answer, best: Trial, target: float | None) -> str:
    """All of it."""
    left, reason = not_tried(found), why(found, best, target)
    parts = [
        about(found),
        _lines([HEAD, *rows(found, best, target)]),
        ["Not tried:", *(f"  {line}" for line in left)] if left else [],
        [wrapped for told in (f"Recommended: {reason}", *warnings(found, target)) for wrapped in wrap(told, WIDTH)],
        [f"    {line}".rstrip() for line in code(found, best.setting)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def about(found: Answer) -> list[str]:
    """What was read, where, and how warm it was."""
    dataset, machine, first = found.dataset, found.machine, found.first
    size = "x".join(map(str, dataset.image_field.size or ())) or "their own sizes"
    cut = f", cut to {found.question.crop[0]}x{found.question.crop[1]}" if found.question.crop else ""
    quota = f", of which a quota grants {machine.quota:g}" if machine.quota is not None else ""
    return [
        f"{found.question.out}, {dataset.split}: {len(dataset)} rows of {size}{cut}, labels as {dataset.label}, "
        f"{bytes_text(found.load.row_bytes)} each; {bytes_text(found.bytes)} of {dataset.manifest.storage}",
        f"{machine.affinity} cores{quota}; {bytes_text(machine.available)} of {bytes_text(machine.memory)} of memory "
        f"and {bytes_text(machine.shared)} of /dev/shm free",
        f"first pass, {_warmth(first.cached)}: {first.rows} rows at {_rates(found, first.rate)}",
        f"then{'' if found.load.every else ' only these rows'}, warm, each for {found.sweep.seconds:.2f} s in "
        f"{len(found.copy)} rounds:",
    ]


def _warmth(share: float | None) -> str:
    if share is None:
        return "warm or cold (the kernel tells only who may write the files)"
    word = "warm" if share > WARM else "cold" if share < COLD else "partly cold"
    return f"{word} ({100 * share:.0f} % were in memory)"


def _rates(found: Answer, rate: float) -> str:
    return f"{_number(rate)} samples/s, {_number(rate * found.load.row_bytes / 1e6)} MB/s"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rows(found: Answer, best: Trial, target: float | None) -> list[tuple[str, ...]]:
    """Of the table: the copy loop, then every trial; marked is the cheapest at each size of batches, and of all."""
    cheap = by_batch(found.trials, target).values()
    marks = {id(one): "recommended" if one is best else f"cheapest of {one.setting.batch}" for one in (*cheap, best)}
    threads = str(found.machine.cores)
    table: list[tuple[str, ...]] = [
        ("copy loop", "", threads, "", *_spread(found.copy), _megabytes(found, found.copy), "1", "", "", "")
    ]
    for one in found.trials:
        setting = one.setting
        many = (str(setting.workers), "") if setting.kind == LOADER else ("", str(setting.workers))
        table.append(
            (
                NAMES[setting.kind],
                str(setting.batch),
                *many,
                *_spread(one.rates),
                _megabytes(found, one.rates),
                f"{one.part:.2f}",
                f"{milliseconds(found, one):.3g}",
                bytes_text(found.load.memory(setting)),
                marks.get(id(one), ""),
            )
        )
    return table


def milliseconds(found: Answer, trial: Trial) -> float:
    """From one batch to the next."""
    return 1000 * found.load.batch_rows(trial.setting) / trial.rate


def _spread(rates: Sequence[float]) -> tuple[str, str, str]:
    return _number(statistics.median(rates)), _number(min(rates)), _number(max(rates))


def _megabytes(found: Answer, rates: Sequence[float]) -> str:
    return _number(statistics.median(rates) * found.load.row_bytes / 1e6)


def _lines(table: Sequence[Sequence[str]]) -> list[str]:
    """The first column and the last to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def why(found: Answer, best: Trial, target: float | None) -> str:
    """What is recommended, in words."""
    fastest = max(found.trials, key=lambda one: one.rate)
    reason = "nothing is faster" if len(found.trials) > 1 else "nothing else was tried"
    if target is not None and best.rate >= target:
        reason = f"it is the least that delivers {_number(target)} samples/s"
    elif best is not fastest:
        reason = f"nothing cheaper is within {100 - 100 * NEAR:.0f} % of the best, {words(fastest.setting)} at "
        reason += _number(fastest.rate)
    ratio = f"{_rates(found, best.rate)}, {100 * best.part:.0f} % of the copy loop's rate"
    step = f"A model that takes longer than {milliseconds(found, best):.2g} ms per step will not wait."
    return f"{words(best.setting)}: {ratio}; {reason}. {step}"


def words(setting: Setting) -> str:
    """A setting as people say it."""
    if setting.kind == LOADER:
        return f"batches of {setting.batch} by {setting.workers} thread{'s' * (setting.workers != 1)}"
    processes = f"{setting.workers} worker process{'es' * (setting.workers != 1)}"
    return f"batches of {setting.batch} by a {setting.kind} with {processes if setting.workers else 'no workers'}"


def warnings(found: Answer, target: float | None) -> list[str]:
    """What the warm rates do not say."""
    told, rate = [], max(one.rate for one in found.trials)
    if target is not None and rate < target:
        told.append(
            f"Nothing here delivers the {_number(target)} samples/s that are wanted: the best is "
            f"{100 * rate / target:.0f} % of that. Smaller pictures, labels as index, or more cores would help."
        )
    if max(found.copy) > UNSTEADY * min(found.copy):
        told.append(
            f"The copy loop itself ran at {_number(min(found.copy))} to {_number(max(found.copy))} samples/s: others "
            "use this machine as well, and smaller differences say little. Measure again when it is quiet."
        )
    if found.larger_than_memory:
        sizes = f"{bytes_text(found.bytes)} of {bytes_text(found.machine.memory)}"
        told.append(
            f"The split is larger than memory ({sizes}), so the warm rates do not apply: every epoch reads from the "
            "disk, at the rate of the first pass if that was cold."
        )
    elif found.first.cached is not None and found.first.cached < WARM:
        told.append("The first epoch reads from the disk, at about the rate of the first pass; later ones are warm.")
    return told


def not_tried(found: Answer) -> list[str]:
    """What was left out, and why."""

    def same(left: LeftOut) -> tuple[str, str, int]:
        return left.why, left.setting.kind, left.setting.batch

    told = []
    for (_, kind, batch), group in groupby(sorted(found.sweep.left_out, key=same), same):
        some = list(group)
        many = ", ".join(str(one.setting.workers) for one in some)
        what = "threads" if kind == LOADER else "workers"
        told.append(f"{NAMES[kind]}, batches of {batch}, {what} {many}: {_reason(some)}")
    return told


def _reason(some: Sequence[LeftOut]) -> str:
    most = max(some, key=lambda one: one.needed)
    if most.why == SHARED:
        return (
            f"up to {bytes_text(most.needed)} of /dev/shm, which has {bytes_text(most.there)}; "
            f"give a container more with --shm-size={-(-int(most.needed) // GIB)}g"
        )
    if most.why == MEMORY:
        return f"up to {bytes_text(most.needed)} of memory; half of what is free is {bytes_text(most.there)}"
    if most.why == ROWS:
        return f"only {most.there:.0f} rows could be read at first; say more --seconds"
    return "there is no time for it; say more --seconds"


def code(found: Answer, setting: Setting) -> list[str]:
    """What to paste."""
    dataset, crop = found.dataset, found.question.crop
    name = dataset.split if dataset.split in ("train", "val", "test") else "dataset"
    out, split = (json.dumps(str(one), ensure_ascii=False) for one in (found.question.out, dataset.split))
    opened = f"{out}, split={split}"
    if dataset.label != dataset.manifest.fields[1].encoding:
        opened += f', label="{dataset.label}"'
    if setting.kind == LOADER:
        window = f", crop={crop}" if crop else ""
        call = (
            f"{name}.loader(batch_size={setting.batch}, shuffle=True, threads={setting.workers}, ahead={setting.ahead}"
        )
        return ["from readers import open_dataset", "", f"{name} = open_dataset({opened})", f"loader = {call}{window})"]
    options = f"batch_size={setting.batch}, shuffle=True, num_workers={setting.workers}"
    options += ", persistent_workers=True" * bool(setting.workers)
    opened += f", transform=RandomCrop({crop})" if crop else ""
    imports = ["RandomCrop"] * bool(crop) + ["SlotDataLoader"] * (setting.kind == SLOTS) + ["open_dataset"]
    return [
        *(["from torch.utils.data import DataLoader"] if setting.kind == STOCK else []),
        f"from readers import {', '.join(imports)}",
        "",
        f"{name} = open_dataset({opened})",
        f"loader = {setting.kind}({name}, {options})",
    ]
