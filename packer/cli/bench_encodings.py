"""The output of `packer bench --encodings`: what each encoding takes, how fast it is read, and which one to take."""

from __future__ import annotations

import statistics
from operator import truediv
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


def encodings_text(request: BenchRequest, facts: dict[str, Any], results: Sequence[EncodingResult]) -> str:
    """Return everything to print."""
    best, why = best_encodings(results)
    table: list[Sequence[str]] = [HEAD]
    for result, fact in zip(results, facts["encodings"], strict=True):
        name = result.words + ", as stored" * (result is results[0])
        fits = "fits" if result.fits else "does not fit"
        rates = [f"{rate:,.0f}" for rate in fact["samples_per_second"].values()]
        marks = f"{fact['of_as_stored']:.2f}", "recommended" if result is best else ""
        table.append((name, f"{result.row_bytes:,.0f}", bytes_text(result.pack_bytes), fits, *rates, *marks))
    rows, batch, threads = facts["pack"]["rows"], facts["loader"]["batch"], facts["loader"]["threads"]
    encode = " ".join(f"--encode {name}={encoding}" for name, encoding in best.encodings.items())
    lines = [
        f"{request.out}: {counted(rows, 'row')} in trial packs, batches of {batch} by {counted(threads, 'thread')}, "
        f"from memory, {counted(len(best.rates), 'round')}",
        f"{bytes_text(facts['memory_for_packs'])} of memory for a pack, next to a training",
        "",
        *text_table(table, left=(0, len(HEAD) - 1)),
        "",
        *wrap(f"Recommended: {best.words}: {why}.", WIDTH),
    ]
    if best is not results[0]:
        lines += ["", f"    packer build --from {request.out} {encode} NEW"]
    return "\n".join(lines)


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
                "of_as_stored": statistics.median(map(truediv, result.rates, results[0].rates)),
            }
            for result in results
        ],
        "recommended": {"fields": dict(best.encodings), "why": why},
    }
