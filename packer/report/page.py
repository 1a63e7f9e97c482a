"""The page of a report. Jinja escapes every text; charts and pictures are made here and need no network."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from numpy.typing import NDArray

from packer.data_checks.findings import KINDS
from packer.packs.recipe_words import recipe_words
from packer.report.charts import class_charts, histogram, share_text
from packer.report.field_sections import field_section
from packer.report.gather import BINS
from packer.report.report import Report
from packer.report.splits import compared, compared_splits
from readers.contract.classes import ClassTable
from readers.contract.plain_text import one_line
from readers.contract.tiles import size_text
from readers.pictures.draw import ramp
from readers.report.axes import Axis
from readers.report.page import STYLE

MOST_MAPS = 120
MOST_TOGETHER = 24
MOST_LINES = 50
MOST_SIZES = 12


class Map(NamedTuple):
    """The heat maps of a class: the largest share of a cell, and for each split a picture as a data URL."""

    name: str
    most: str
    pictures: Sequence[tuple[str, str]]


class Together(NamedTuple):
    """Classes in order, and for each a line: the share of its rows in which each of the classes occurs."""

    names: Sequence[str]
    lines: Sequence[tuple[str, Sequence[tuple[str, str]]]]


def html(report: Report) -> str:
    """Return the report as one file of HTML without scripts."""
    templates = Environment(loader=PackageLoader("packer.report"), autoescape=True, finalize=_harmless)
    return templates.get_template("report.html").render(
        report=report,
        style=Markup(STYLE),
        kinds=KINDS,
        facts=list(_facts(report)),
        recipe=list(recipe_words(report.manifest.recipe)),
        class_charts=[Markup(chart) for chart in _class_charts(report)],
        weights=_weights(report),
        sections=[field_section(report.manifest, drawn) for drawn in report.fields],
        charts=[Markup(chart) for chart in _charts(report)],
        compared=compared(report.splits),
        maps=_maps(report),
        together=_together(report),
        sizes=_sizes(report),
        most=MOST_LINES,
    )


def _harmless(value: Any) -> Any:
    """Show what a terminal or a page would obey as its code."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else one_line(value)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    manifest, remarks = report.manifest, report.remarks
    rejects = sum(split.rejects for split in manifest.splits)
    yield (
        "rows",
        f"{manifest.rows:,}" + (f", {manifest.unlabelled:,} of them without a label" * bool(manifest.unlabelled)),
    )
    yield "rejected", f"{rejects:,}"
    yield "bytes", f"{manifest.bytes:,} in {manifest.shards:,} shards of {manifest.storage}"
    yield "generation", f"{manifest.generation}, published {manifest.created}"
    if remarks is not None and remarks.seconds > 0:
        built = remarks.rows - remarks.reused
        rate = f"{built / remarks.seconds:,.0f} rows/s"
        yield "built", f"{built:,} rows in {remarks.seconds:,.1f} s, {rate}; {remarks.reused:,} reused"
    speed = report.speed
    if speed.seconds > 0:
        rate = f"{speed.rows / speed.seconds:,.0f} rows/s, {speed.bytes / speed.seconds / 1e6:,.0f} MB/s"
        yield "read", f"{rate} by one thread, {speed.rows:,} rows of a random draw; more: packer bench"
    tools = manifest.recipe.get("tools")
    if isinstance(tools, list):
        yield "versions", ", ".join(map(str, tools))


def _class_charts(report: Report) -> Iterator[str]:
    if report.counts is not None and report.label is not None:
        yield from class_charts(report.label, report.counts, report.gathered.labelled)


def _weights(report: Report) -> list[tuple[str, str, Sequence[str]]]:
    """Return a line for each class: its name, its share, and its weights in the training split."""
    training = [stats for stats in report.splits if stats.split.startswith("train")]
    split = next(iter(training or report.splits), None)
    if split is None or not split.classes or not split.classes[0].weights:
        return []
    return [
        (stats.name, share_text(stats.share), [f"{weight:.4g}" for weight in stats.weights.values()])
        for stats in split.classes
    ]


def _charts(report: Report) -> Iterator[str]:
    gathered = report.gathered
    edges = [(number + 0.5) / BINS for number in range(BINS)]
    if gathered.labelled:
        percent = [100 * edge for edge in edges]
        axis = Axis("ignored pixels of a picture, %", least=0, most=100)
        yield histogram("Pictures by their ignored share", axis, percent, gathered.ignored)
        counts = list(range(len(gathered.many)))
        last = int(np.flatnonzero(gathered.many)[-1]) + 1 if gathered.many.any() else 1
        yield histogram("Pictures by the number of their classes", Axis("classes"), counts[:last], gathered.many[:last])
    if gathered.brightness.any():
        axis = Axis("mean of a picture, from 0 to 1", least=0, most=1)
        yield histogram("Pictures by their brightness", axis, edges, gathered.brightness)
    if len(report.sizes) > 1:
        areas = [(math.prod(size) / 1e6, count) for size, count in report.sizes.items()]
        numbers, bins = np.histogram([area for area, _ in areas], BINS, weights=[count for _, count in areas])
        middles = ((bins[1:] + bins[:-1]) / 2).tolist()
        yield histogram("Pictures by their size before", Axis("megapixels"), middles, numbers)


def _maps(report: Report) -> list[Map]:
    classes, counts = _classes(report), report.counts
    heat = {split: report.heat[split] for split in compared_splits(report.splits) if split in report.heat}
    if not heat or classes is None or counts is None:
        return []
    best = sorted(range(len(classes)), key=lambda number: -counts.rows[number])[: MOST_MAPS // len(heat)]
    shares = {number: {split: maps.shares[number] for split, maps in heat.items()} for number in best}
    return [
        _map(classes.names[number], heat_of) for number, heat_of in shares.items() if any(map(np.any, heat_of.values()))
    ]


def _map(name: str, shares: Mapping[str, NDArray[np.float32]]) -> Map:
    most = max(float(share.max()) for share in shares.values())
    return Map(name, share_text(most), [(split, _picture(share / most)) for split, share in shares.items()])


def _picture(shares: NDArray[np.float32]) -> str:
    is_encoded, data = cv2.imencode(".png", ramp()[np.round(255 * shares).astype(np.uint8)][:, :, ::-1])
    assert is_encoded, "an array of 8 bits is a PNG"
    return f"data:image/png;base64,{b64encode(bytes(data)).decode()}"


def _together(report: Report) -> Together | None:
    """Return which classes occur together, of those that most pictures have."""
    classes, table = _classes(report), report.gathered.together
    if classes is None or table is None or len(classes) < 2:
        return None
    rows = np.diag(table)
    best = [int(number) for number in np.argsort(-rows, kind="stable")[:MOST_TOGETHER] if rows[number]]
    lines = []
    for number in best:
        shares = [table[number, other] / rows[number] for other in best]
        lines.append((classes.names[number], [(f"{100 * share:.0f}", f"{share:.2f}") for share in shares]))
    return Together([classes.names[number] for number in best], lines) if len(best) > 1 else None


def _sizes(report: Report) -> list[tuple[str, str, str]]:
    every = max(1, sum(report.sizes.values()))
    sizes = report.sizes.most_common(MOST_SIZES)
    return [(size_text(size), f"{count:,}", share_text(count / every)) for size, count in sizes]


def _classes(report: Report) -> ClassTable | None:
    return None if report.label is None else report.label.classes
