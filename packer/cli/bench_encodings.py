"""The output of `packer bench --encodings`: what each encoding takes, how fast it is read, and which one to take."""

from __future__ import annotations

import statistics
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from packer.bench.encodings import EncodingResult, best_encodings
from packer.cli.bench_text import WIDTH
from packer.cli.text_table import text_table
from packer.cli.values import bytes_text
from packer.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packer.bench.request import BenchRequest
    from packer.bench.settings import LoaderSettings

HEAD = ("", "bytes a row", "whole pack", "in memory", "samples/s", "least", "most", "of as stored", "")


def encodings_text(
    request: BenchRequest, rows: int, settings: LoaderSettings, memory: int, results: Sequence[EncodingResult]
) -> str:
    """Return everything to print."""
    best, why = best_encodings(results)
    table = [HEAD, *(_line(result, results[0], result is best) for result in results)]
    advice = f"Recommended: {best.words}: {why}."
    encode = " ".join(f"--encode {name}={each}" for name, each in best.encodings.items())
    new = [] if best is results[0] else [f"    packer build --from {request.out} {encode} NEW"]
    return "\n".join(
        [
            f"{request.out}: {counted(rows, 'row')} in trial packs, batches of {settings.batch} by "
            f"{counted(settings.workers, 'thread')}, from memory, {counted(len(best.rates), 'round')}",
            f"{bytes_text(memory)} of memory for a pack, next to a training",
            "",
            *text_table(table, left=(0, len(HEAD) - 1)),
            "",
            *wrap(advice, WIDTH),
            *["", *new][: 2 * len(new)],
        ]
    )


def _line(result: EncodingResult, stored: EncodingResult, is_best: bool) -> tuple[str, ...]:
    return (
        result.words + ", as stored" * (result is stored),
        f"{result.row_bytes:,.0f}",
        bytes_text(result.pack_bytes),
        "fits" if result.fits else "does not fit",
        *(f"{rate:,.0f}" for rate in (result.rate, min(result.rates), max(result.rates))),
        f"{_ratio(result, stored):.2f}",
        "recommended" if is_best else "",
    )


def encodings_json(
    request: BenchRequest, rows: int, settings: LoaderSettings, memory: int, results: Sequence[EncodingResult]
) -> dict[str, Any]:
    """Return all results in plain numbers."""
    best, why = best_encodings(results)
    return {
        "pack": {"path": str(request.out), "rows": rows},
        "memory_for_packs": memory,
        "loader": {"batch": settings.batch, "threads": settings.workers},
        "encodings": [
            {
                "fields": dict(result.encodings),
                "row_bytes": result.row_bytes,
                "pack_bytes": result.pack_bytes,
                "fits_memory": result.fits,
                "samples_per_second": {"median": result.rate, "least": min(result.rates), "most": max(result.rates)},
                "of_as_stored": _ratio(result, results[0]),
            }
            for result in results
        ],
        "recommended": {"fields": dict(best.encodings), "why": why},
    }


def _ratio(result: EncodingResult, stored: EncodingResult) -> float:
    """Return the median of the ratios in each round."""
    return statistics.median(ours / theirs for ours, theirs in zip(result.rates, stored.rates, strict=True))
