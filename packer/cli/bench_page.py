"""The report of `packer bench`: a plot, or a page of HTML with all that is said on the terminal."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from html import escape

from packer.bench.run import Answer
from packer.bench.settings import LOADER, Trial
from packer.cli.bench_text import HEAD, NAMES, about, code, not_tried, rows, warnings, why
from readers.report.chart import Axis, Series, line_chart
from readers.report.page import page, table


def html(found: Answer, best: Trial, target: float | None) -> str:
    """A page that needs nothing but itself."""
    left = not_tried(found)
    parts = [
        f"<p>{escape(why(found, best, target))}</p>",
        *(f"<p>{escape(line)}</p>" for line in warnings(found, target)),
        f"<pre><code>{escape(chr(10).join(code(found, best.setting)))}</code></pre>",
        *_charts(found, best),
        "<h2>Every trial</h2>",
        f"<p>{'<br>'.join(map(escape, about(found)))}</p>",
        table(HEAD, rows(found, best, target)),
        "<h2>Not tried</h2>" * bool(left),
        *(f"<p>{escape(line)}</p>" for line in left),
    ]
    return page(f"How fast {found.dataset.root.name} reads here", "\n".join(parts))


def svg(found: Answer, best: Trial, target: float | None) -> str:
    """The plot alone."""
    return next(_charts(found, best))


def _charts(found: Answer, best: Trial) -> Iterator[str]:
    """Over the sizes of batches, and at the recommended size over the number of threads, where there are several."""
    sizes = sorted({one.setting.batch for one in found.trials})
    if len(sizes) > 1:
        yield _chart(found, "by the size of batches", "samples in a batch", sizes, list(_by_size(found)))
    batch = best.setting.batch
    there = [one for one in found.trials if one.setting.batch == batch]
    many = sorted({one.setting.workers for one in there if one.setting.workers})
    if len(many) > 1 or len(sizes) == 1:
        kinds = {kind: [one for one in there if one.setting.kind == kind and one.setting.workers] for kind in NAMES}
        series = [
            _series(f"{NAMES[kind]}, by {_many(kind, 2)}", [(one.setting.workers, one) for one in of])
            for kind, of in kinds.items()
            if of
        ]
        yield _chart(found, f"in batches of {batch}", "threads, or worker processes", many or [1], series)


def _by_size(found: Answer) -> Iterator[Series]:
    """A line for each loader and number of threads or workers."""
    for kind, many in dict.fromkeys((one.setting.kind, one.setting.workers) for one in found.trials):
        some = [one for one in found.trials if (one.setting.kind, one.setting.workers) == (kind, many)]
        yield _series(f"{NAMES[kind]}, {many} {_many(kind, many)}", [(one.setting.batch, one) for one in some])


def _many(kind: str, count: int) -> str:
    return ("thread" if kind == LOADER else "worker") + "s" * (count != 1)


def _series(name: str, trials: list[tuple[int, Trial]]) -> Series:
    whiskers = tuple((min(one.rates), max(one.rates)) for _, one in trials)
    return Series(name, tuple((at, one.rate) for at, one in trials), whiskers)


def _chart(found: Answer, title: str, label: str, places: list[int], series: list[Series]) -> str:
    copy = statistics.median(found.copy)
    limit = Series(f"copy loop, {found.machine.cores} cores", [(at, copy) for at in places], dashed=True)
    axis = Axis(label, ticks=places, doubling=True)
    return line_chart(
        f"How fast {found.dataset.root.name}/{found.dataset.split} reads, {title}",
        axis,
        Axis("samples/s"),
        [*series, limit],
    )
