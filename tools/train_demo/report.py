"""The table of all comparisons in Markdown, and the same as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from bench.machine import processor
from tables import markdown, spread

from train_demo.comparison import Comparison, curve, median_seconds
from train_demo.decode_cost import Decoding
from train_demo.pipelines import Setup
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


def header(setup: Setup, epochs: int) -> dict[str, str]:
    """Describe the data, the machine and the cost before the first epoch."""
    packed, dataset = setup.packed, setup.packed.dataset
    files = {packed.raw / file for piece in packed.pieces for file in piece.ref.parts}
    mb = sum(file.stat().st_size for file in files) / 1e6
    height, width = dataset.size(0)
    rows = len(dataset) * sum(field.row_bytes_at(height, width) for field in dataset.fields) / 1e6
    built = "which existed already" if packed.seconds is None else f"built in {packed.seconds:.1f} s"
    return {
        "data": f"{len(dataset)} pairs at {height}x{width}, {len(dataset.classes)} classes, batches of {setup.batch}",
        "machine": f"{_processor(setup.device)}, torch {torch.__version__}, Python {platform.python_version()}",
        "epochs": f"{epochs} epochs, raw files and pack in turns; medians; load at the start {os.getloadavg()[0]:.1f}",
        "pack": f"{mb:.0f} MB of raw files, packed into {rows:.0f} MB, {built}",
    }


def _processor(device: torch.device) -> str:
    cores = f"{processor()}, {len(os.sched_getaffinity(0))} cores for this process"
    return f"{torch.cuda.get_device_name(device)}, {cores}" if device.type == "cuda" else cores


def decoded_text(decoding: Decoding) -> str:
    """Describe the time to decode a pair."""
    return (
        f"to decode a pair in one thread: {decoding.ours:.1f} ms, {decoding.opencv:.1f} ms with plain OpenCV "
        f"({decoding.same:.0%} of the pairs have the same pixels)"
    )


def lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield two rows for each model, and the trials of raw files."""
    table = [HEAD, *(row for comparison in comparisons for row in _rows(comparison))]
    yield from markdown(table)
    yield ""
    for comparison in comparisons:
        steps, tried = (
            len(curve(comparison.raw)),
            ", ".join(f"{seconds:.2f} with {workers}" for workers, seconds in comparison.tried.items()),
        )
        yield f"width {comparison.width}: seconds of an epoch of raw files by workers: {tried}"
        yield f"width {comparison.width}: largest difference between losses in {steps} steps: {comparison.difference:g}"


def _rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    name = f"width {comparison.width}, {comparison.weights / 1e6:.2g} M weights"
    for pipeline, epochs in ((f"raw files, {comparison.workers} workers", comparison.raw), ("pack", comparison.pack)):
        yield (
            name,
            pipeline,
            spread([epoch.seconds for epoch in epochs], ".2f"),
            *(f"{median_part(epochs, part):.2f}" for part in PARTS),
            f"{statistics.median(epoch.waited for epoch in epochs):.0%}",
            f"{statistics.median(epoch.cpu for epoch in epochs):.1f}",
            f"{epochs[-1].losses[-1]:.4f}",
            f"{comparison.gain:.2f}x" if epochs is comparison.pack else "",
        )


def median_part(epochs: Sequence[Epoch], part: str) -> float:
    """Return the median seconds of a part in an epoch."""
    return statistics.median(epoch.spent(part) for epoch in epochs)


def document(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the same as JSON, with every loss."""
    return [
        {
            "width": comparison.width,
            "weights": comparison.weights,
            "workers": comparison.workers,
            "tried": comparison.tried,
            "faster": comparison.gain,
            "difference": comparison.difference,
            "raw": _document(comparison.raw),
            "pack": _document(comparison.pack),
        }
        for comparison in comparisons
    ]


def _document(epochs: Sequence[Epoch]) -> dict[str, Any]:
    return {
        "seconds": median_seconds(epochs),
        **{part: median_part(epochs, part) for part in PARTS},
        "cpu": statistics.median(epoch.cpu for epoch in epochs),
        "waited": statistics.median(epoch.waited for epoch in epochs),
        "epochs": [
            {"seconds": epoch.seconds, "cpu": epoch.cpu, **_parts(epoch), "losses": epoch.losses} for epoch in epochs
        ],
    }


def _parts(epoch: Epoch) -> dict[str, float]:
    return {part: epoch.spent(part) for part in PARTS}
