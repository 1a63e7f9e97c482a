"""The table of all duels in Markdown, and the same as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from train_demo.contenders import Setting
from train_demo.duel import Duel, curve, median_seconds
from train_demo.plain import Decoding
from train_demo.training import Epoch

PARTS = ("waiting", "finishing", "computing")
HEAD = (
    "U-Net",
    "trained on",
    "epoch, s",
    *(f"{part}, s" for part in PARTS),
    "steps that waited",
    "CPU, s",
    "last loss",
    "faster",
)


def head(setting: Setting, epochs: int) -> dict[str, str]:
    """What was trained on what, and what stands before the first epoch."""
    packed, dataset = setting.packed, setting.packed.dataset
    files = {packed.raw / file for piece in packed.pieces for file in piece.files}
    mb = sum(file.stat().st_size for file in files) / 1e6
    height, width = dataset.size(0)
    rows = (
        len(dataset) * sum(one.row_bytes_at(height, width) for one in (dataset.image_field, dataset.label_field)) / 1e6
    )
    built = "which was there already" if packed.seconds is None else f"built in {packed.seconds:.1f} s"
    return {
        "data": f"{len(dataset)} pairs at {height}x{width}, {len(dataset.classes)} classes, batches of {setting.batch}",
        "machine": f"{_processor(setting.device)}, torch {torch.__version__}, Python {platform.python_version()}",
        "epochs": f"{epochs} epochs, raw files and pack in turns; medians; load at the start {os.getloadavg()[0]:.1f}",
        "pack": f"{mb:.0f} MB of raw files, packed into {rows:.0f} MB, {built}",
    }


def _processor(device: torch.device) -> str:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = models[0].partition(": ")[2] if models else platform.machine()
    cores = f"{name}, {len(os.sched_getaffinity(0))} cores"
    return f"{torch.cuda.get_device_name(device)}, {cores}" if device.type == "cuda" else cores


def decoded_text(decoding: Decoding) -> str:
    """How dear the raw files are."""
    return (
        f"to decode a pair in one thread: {decoding.ours:.1f} ms, {decoding.opencv:.1f} ms with plain OpenCV "
        f"({decoding.same:.0%} of the pairs are the same pixels)"
    )


def lines(duels: Sequence[Duel]) -> Iterator[str]:
    """Two rows for each model, and what was tried for the raw files."""
    table = [HEAD, *(row for duel in duels for row in _rows(duel))]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    for number, row in enumerate(table):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    yield ""
    for duel in duels:
        steps, tried = (
            len(curve(duel.raw)),
            ", ".join(f"{seconds:.2f} with {workers}" for workers, seconds in duel.tried.items()),
        )
        yield f"width {duel.width}: seconds of an epoch of raw files by workers: {tried}"
        yield f"width {duel.width}: largest difference between losses in {steps} steps: {duel.difference:g}"


def _rows(duel: Duel) -> Iterator[tuple[str, ...]]:
    name = f"width {duel.width}, {duel.weights / 1e6:.2g} M weights"
    for who, epochs in ((f"raw files, {duel.workers} workers", duel.raw), ("pack", duel.pack)):
        seconds = sorted(epoch.seconds for epoch in epochs)
        yield (
            name,
            who,
            f"{statistics.median(seconds):.2f} ({seconds[0]:.2f} to {seconds[-1]:.2f})",
            *(f"{middle(epochs, part):.2f}" for part in PARTS),
            f"{statistics.median(epoch.waited for epoch in epochs):.0%}",
            f"{statistics.median(epoch.cpu for epoch in epochs):.1f}",
            f"{epochs[-1].losses[-1]:.4f}",
            f"{duel.gain:.2f}x" if epochs is duel.pack else "",
        )


def middle(epochs: Sequence[Epoch], part: str) -> float:
    """The median of the seconds that a part takes in an epoch."""
    return statistics.median(epoch.spent(part) for epoch in epochs)


def document(duels: Sequence[Duel]) -> list[dict[str, Any]]:
    """The same for machines, with every loss."""
    return [
        {
            "width": duel.width,
            "weights": duel.weights,
            "workers": duel.workers,
            "tried": duel.tried,
            "faster": duel.gain,
            "difference": duel.difference,
            "raw": _contender(duel.raw),
            "pack": _contender(duel.pack),
        }
        for duel in duels
    ]


def _contender(epochs: Sequence[Epoch]) -> dict[str, Any]:
    return {
        "seconds": median_seconds(epochs),
        **{part: middle(epochs, part) for part in PARTS},
        "cpu": statistics.median(epoch.cpu for epoch in epochs),
        "waited": statistics.median(epoch.waited for epoch in epochs),
        "epochs": [
            {"seconds": one.seconds, "cpu": one.cpu, **{part: one.spent(part) for part in PARTS}, "losses": one.losses}
            for one in epochs
        ],
    }
