"""The section of a field in a report: facts in words, and charts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from packer.errors import first_of
from packer.report.charts import class_charts, histogram, share_text, titled
from packer.report.field_draw import FieldDraw
from packer.report.gather import BINS
from readers.contract.fields import Field
from readers.contract.kinds import CLASSES, IDS, KINDS, VALUES
from readers.contract.manifest import Manifest
from readers.contract.statistics import ClassStatistics, IdStatistics, MaskedStatistics, ValueStatistics
from readers.report.axes import Axis
from readers.report.bars import Bar, bar_chart
from readers.statistics import deviation, mean

MOST_BANDS = 16
"""The most bands whose mean is given."""
OBJECT_SIZES = (16, 64, 256, 1024, 4096, 16384)
"""Objects are counted by their pixels between these numbers."""


class FieldSection(NamedTuple):
    """A title, facts in words, and charts."""

    title: str
    facts: list[str]
    charts: list[Markup]


def field_section(manifest: Manifest, drawn: FieldDraw) -> FieldSection:
    """Return the section of a field: what was counted of all rows, and what a draw of rows shows."""
    field = drawn.field
    title = f"{field.name}: {KINDS[field.kind].words}"
    facts = [fact for facts in (_counted(manifest, field), _drawn(drawn)) for fact in facts]
    return FieldSection(title, facts, [Markup(chart) for chart in _charts(manifest, drawn)])


def rows_with(manifest: Manifest, field: Field) -> int:
    """Return how many rows have a field."""
    return sum(part.rows for split in manifest.splits for part in split.parts if field.name in part.fields)


def _counted(manifest: Manifest, field: Field) -> Iterator[str]:
    """Yield facts about all rows, which are exact."""
    statistics, rows = manifest.statistics[field.name], rows_with(manifest, field)
    yield f"{rows:,} of {manifest.rows:,} rows have it."
    if KINDS[field.kind].has_mean and rows:
        scale = "" if field.range is None else f", where {field.range[0]:,.6g} is 0 and {field.range[1]:,.6g} is 1"
        means, deviations = mean(field, statistics), deviation(field, statistics)
        names = [f"{name}: " for name in (field.bands or ())[: len(means)]] if len(means) > 1 else [""]
        texts = [f"{n}{m:,.5g} ± {d:,.5g}" for n, m, d in zip(names, means, deviations, strict=True)]
        yield f"Mean and deviation of all rows{scale}: {'; '.join(first_of(texts, MOST_BANDS, 'bands'))}."
    if isinstance(statistics, ValueStatistics):
        share = statistics.invalid / max(1, statistics.numbers + statistics.invalid)
        yield f"{share_text(share)} of the pixels of all rows have no value."
    if isinstance(statistics, MaskedStatistics):
        share = sum(statistics.missing) / max(1, statistics.numbers * len(statistics.missing))
        yield f"{share_text(share)} of the numbers of all rows have no data."
    if isinstance(statistics, IdStatistics):
        yield f"{share_text(statistics.empty / max(1, statistics.numbers))} of the pixels of all rows are in no object."
    if isinstance(statistics, ClassStatistics) and field.kind == CLASSES:
        yield f"{share_text(statistics.ignored / max(1, statistics.count))} of the pixels of all rows are ignored."


def _drawn(drawn: FieldDraw) -> Iterator[str]:
    """Yield facts about the rows of the draw."""
    if KINDS[drawn.field.kind].has_classes or not drawn.rows:
        return
    if drawn.objects:
        sizes = np.concatenate(drawn.sizes)
        yield (
            f"{len(sizes):,} objects in {drawn.rows:,} rows of a random draw, {min(drawn.objects):,} to "
            f"{max(drawn.objects):,} in a row."
        )
    elif drawn.means:
        yield (
            f"Numbers from {drawn.least:,.5g} to {drawn.most:,.5g} at points of {drawn.rows:,} rows of a random draw; "
            "there may be smaller and larger ones between them."
        )
    else:
        yield f"{drawn.rows:,} rows of a random draw have no number at all."


def _charts(manifest: Manifest, drawn: FieldDraw) -> Iterator[str]:
    field, name = drawn.field, drawn.field.name
    statistics = manifest.statistics[name]
    if isinstance(statistics, ClassStatistics):
        yield from class_charts(field, statistics, rows_with(manifest, field), name)
    if len(drawn.means) > 1:
        yield _histogram(titled(name, "Pictures of the draw by their mean"), "mean of a picture", drawn.means)
    if drawn.field.kind in (VALUES, IDS) and any(drawn.empty):
        what = "no value" if field.kind == VALUES else "no object"
        yield _histogram(
            titled(name, f"Pictures of the draw by their share with {what}"),
            f"pixels with {what}, %",
            [100 * share for share in drawn.empty],
            (0, 100),
        )
    if drawn.objects:
        counts = np.bincount(drawn.objects)
        title = titled(name, "Pictures of the draw by the number of their objects")
        if len(counts) <= 3 * BINS:
            yield histogram(title, Axis("objects"), range(len(counts)), counts)
        else:
            yield _histogram(title, "objects", drawn.objects)
        yield bar_chart(titled(name, "Objects of the draw by their size"), _object_bars(np.concatenate(drawn.sizes)))


def _histogram(
    title: str, label: str, numbers: list[float] | list[int], limits: tuple[float, float] | None = None
) -> str:
    counts, edges = np.histogram(numbers, BINS, limits)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    least, most = limits or (float(edges[0]), float(edges[-1]))
    return histogram(title, Axis(label, least=least, most=most), middles, counts)


def _object_bars(sizes: NDArray[np.int64]) -> list[Bar]:
    """Return a bar for the objects between each two of OBJECT_SIZES."""
    counts = np.bincount(np.searchsorted(OBJECT_SIZES, sizes, "right"), minlength=len(OBJECT_SIZES) + 1).tolist()
    names = [f"{low:,} to {high - 1:,} pixels" for low, high in pairwise((1, *OBJECT_SIZES))]
    names.append(f"{OBJECT_SIZES[-1]:,} pixels and more")
    every = max(1, len(sizes))
    return [
        Bar(name, count, f"{count:,} ({share_text(count / every)})") for name, count in zip(names, counts, strict=True)
    ]
