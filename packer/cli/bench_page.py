"""The report of `packer bench`: a plot, or an HTML page with the plot and all printed results."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from html import escape

from packer.bench.recommend import LoaderResult
from packer.bench.run import BenchResult
from packer.bench.settings import LOADER
from packer.cli.bench_text import HEAD, NAMES, about, code, reason, rows, skipped_lines, warnings
from readers.report.axes import Axis
from readers.report.chart import Series, line_chart
from readers.report.page import page, table


def html(result: BenchResult, best: LoaderResult, target: float | None) -> str:
    """Return a self-contained page."""
    skipped = skipped_lines(result)
    parts = [
        f"<p>{escape(reason(result, best, target))}</p>",
        *(f"<p>{escape(line)}</p>" for line in warnings(result, target)),
        f"<pre><code>{escape(chr(10).join(code(result, best.settings)))}</code></pre>",
        *_charts(result, best),
        "<h2>Every trial</h2>",
        f"<p>{'<br>'.join(map(escape, about(result)))}</p>",
        table(HEAD, rows(result, best, target)),
        "<h2>Not tried</h2>" * bool(skipped),
        *(f"<p>{escape(line)}</p>" for line in skipped),
    ]
    return page(f"How fast {result.dataset.root.name} reads here", "\n".join(parts))


def svg(result: BenchResult, best: LoaderResult, target: float | None) -> str:
    """Return the first plot."""
    return next(_charts(result, best))


def _charts(result: BenchResult, best: LoaderResult) -> Iterator[str]:
    """Yield a plot by batch size if there are several, and one by number of threads at the recommended batch size."""
    sizes = sorted({each.settings.batch for each in result.loaders})
    if len(sizes) > 1:
        yield _chart(result, "by batch size", "samples in a batch", sizes, list(_by_size(result)))
    batch = best.settings.batch
    same_size = [each for each in result.loaders if each.settings.batch == batch]
    counts = sorted({each.settings.workers for each in same_size if each.settings.workers})
    if len(counts) > 1 or len(sizes) == 1:
        kinds = {
            kind: [each for each in same_size if each.settings.kind == kind and each.settings.workers] for kind in NAMES
        }
        series = [
            _series(f"{NAMES[kind]}, by {_unit(kind, 2)}", [(each.settings.workers, each) for each in loaders])
            for kind, loaders in kinds.items()
            if loaders
        ]
        yield _chart(result, f"in batches of {batch}", "threads, or worker processes", counts or [1], series)


def _by_size(result: BenchResult) -> Iterator[Series]:
    """Yield a line for each loader and number of threads or workers."""
    for kind, count in dict.fromkeys((each.settings.kind, each.settings.workers) for each in result.loaders):
        loaders = [each for each in result.loaders if (each.settings.kind, each.settings.workers) == (kind, count)]
        points = [(each.settings.batch, each) for each in loaders]
        yield _series(f"{NAMES[kind]}, {count} {_unit(kind, count)}", points)


def _unit(kind: str, count: int) -> str:
    return ("thread" if kind == LOADER else "worker") + "s" * (count != 1)


def _series(name: str, points: list[tuple[int, LoaderResult]]) -> Series:
    whiskers = tuple((min(loader.rates), max(loader.rates)) for _, loader in points)
    return Series(name, tuple((x, loader.rate) for x, loader in points), whiskers)


def _chart(result: BenchResult, title: str, label: str, ticks: list[int], series: list[Series]) -> str:
    copy_rate = statistics.median(result.copy_rates)
    limit = Series(f"copy loop, {result.machine.cores} cores", [(tick, copy_rate) for tick in ticks], dashed=True)
    return line_chart(
        f"How fast {result.dataset.root.name}/{result.dataset.split} reads, {title}",
        Axis(label, ticks=ticks, doubling=True),
        Axis("samples/s"),
        [*series, limit],
    )
