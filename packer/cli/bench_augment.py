"""The output of `packer bench --augment`: what each step of a loader costs."""

from __future__ import annotations

import statistics
from operator import truediv
from typing import TYPE_CHECKING, Any

from packer.cli.text_table import text_table
from packer.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packer.bench.augment import StepResult
    from packer.bench.request import BenchRequest
    from packer.bench.settings import LoaderSettings

HEAD = ("loader(…)", "samples/s", "least", "most", "of read only", "cores' time a sample", "")
SLOW = 0.5
"""A step that leaves less of the rate is named."""


def augment_json(
    request: BenchRequest, settings: LoaderSettings, rows: int, results: Sequence[StepResult]
) -> dict[str, Any]:
    """Return all results in plain numbers."""
    return {
        "pack": {"path": str(request.out), "rows": rows},
        "loader": {"batch": settings.batch, "threads": settings.workers},
        "steps": [
            {
                "step": result.step.words,
                "samples_per_second": {"median": result.rate, "least": min(result.rates), "most": max(result.rates)},
                "of_read_only": statistics.median(map(truediv, result.rates, results[0].rates)),
                "thread_milliseconds_a_sample": 1000 * settings.workers / result.rate,
            }
            for result in results
        ],
    }


def augment_text(request: BenchRequest, facts: dict[str, Any]) -> str:
    """Return everything to print."""
    table: list[Sequence[str]] = [HEAD]
    for fact in facts["steps"]:
        rates = [f"{rate:,.0f}" for rate in fact["samples_per_second"].values()]
        slow = "slow" if fact["of_read_only"] < SLOW else ""
        milliseconds = f"{fact['thread_milliseconds_a_sample']:.2f} ms"
        table.append((fact["step"], *rates, f"{fact['of_read_only']:.2f}", milliseconds, slow))
    batch, threads = facts["loader"]["batch"], facts["loader"]["threads"]
    lines = [
        f"{request.out}: {counted(facts['pack']['rows'], 'row')}, batches of {batch} by {counted(threads, 'thread')}, "
        "from memory",
        "",
        *text_table(table, left=(0, len(HEAD) - 1)),
        "",
        'If a GPU waits for this: loader(…, on="device").to("cuda") does the same there.',
    ]
    return "\n".join(lines)
