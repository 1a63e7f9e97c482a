"""The page of a report. Jinja escapes every text; charts and pictures are made here and need no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from numpy.typing import NDArray

from packer.data_checks.findings import KINDS
from packer.report.gather import BINS
from packer.report.report import Report
from readers.contract.classes import ClassTable
from readers.contract.kinds import CLASSES
from readers.contract.plain_text import one_line
from readers.pictures.draw import ramp
from readers.report.axes import Axis
from readers.report.bars import Bar, bar_chart
from readers.report.chart import Series, stacked_chart
from readers.report.page import STYLE

MOST_BARS = 150
"""A chart of classes shows at most so many: those with the most pixels."""
MOST_MAPS = 60
MOST_TOGETHER = 24
MOST_LINES = 50
MOST_SIZES = 12


class Map(NamedTuple):
    """A heat map: a class, the largest share of a cell, and a picture as a data URL."""

    name: str
    most: str
    picture: str


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
        recipe=list(_recipe(report.manifest.recipe)),
        class_charts=[Markup(chart) for chart in _class_charts(report)],
        weights=_weights(report),
        charts=[Markup(chart) for chart in _charts(report)],
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
    if remarks is not None:
        built = remarks.rows - remarks.reused
        rate = f", {built / remarks.seconds:,.0f} rows/s" if remarks.seconds > 0 else ""
        yield "built", f"{built:,} rows in {remarks.seconds:,.1f} s{rate}; {remarks.reused:,} reused"
    speed = report.speed
    if speed.seconds > 0:
        rate = f"{speed.rows / speed.seconds:,.0f} rows/s, {speed.bytes / speed.seconds / 1e6:,.0f} MB/s"
        yield "read", f"{rate} by one thread, {speed.rows:,} rows of a random draw; more: packer bench"
    tools = manifest.recipe.get("tools")
    if isinstance(tools, list):
        yield "versions", ", ".join(map(str, tools))


def _recipe(recipe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in recipe.items():
        if key == "fields" and isinstance(value, list):
            for rule in value:
                found = rule if isinstance(rule, dict) else {}
                field = found.get("field")
                name = field.get("name", "") if isinstance(field, dict) else ""
                words = [f"{key} {each}" for key, each in found.items() if not isinstance(each, (dict, list)) and each]
                yield str(name), ", ".join(words) or "-"
        elif key != "tools":
            yield key, "x".join(map(str, value)) or "of each picture" if isinstance(value, list) else str(value)


def _class_charts(report: Report) -> Iterator[str]:
    known, classes = report.counts, _classes(report)
    if known is None or classes is None or report.label is None:
        return
    alone = report.label.kind == CLASSES
    pixels = max(1, known.count if alone else max(known.areas, default=0))
    rows = max(1, report.gathered.labelled)
    best = sorted(range(len(classes)), key=lambda number: -known.classes[number])[:MOST_BARS]
    more = f" (the {MOST_BARS} most frequent of {len(classes)})" if len(classes) > MOST_BARS else ""
    colours, names = classes.palette.hex, [one_line(name) for name in classes.names]
    ignored = [Bar("ignored", known.ignored, _share(known.ignored / pixels), "#c9ced6")] if alone else []
    yield bar_chart(
        f"Pixels of each class{more}",
        [Bar(names[n], known.classes[n], _share(known.classes[n] / pixels), colours[n]) for n in best] + ignored,
    )
    yield bar_chart(
        f"Pictures with each class{more}",
        [Bar(names[n], known.rows[n], f"{known.rows[n]:,} ({_share(known.rows[n] / rows)})", colours[n]) for n in best],
    )


def _weights(report: Report) -> list[tuple[str, str, Sequence[str]]]:
    """Return a line for each class: its name, its share, and its weights in the training split."""
    split = next((each for each in report.splits if each.split.startswith("train")), next(iter(report.splits), None))
    if split is None or not split.classes or not split.classes[0].weights:
        return []
    return [
        (each.name, _share(each.share), [f"{weight:.4g}" for weight in each.weights.values()]) for each in split.classes
    ]


def _charts(report: Report) -> Iterator[str]:
    found = report.gathered
    edges = [(number + 0.5) / BINS for number in range(BINS)]
    if found.labelled:
        percent = [100 * edge for edge in edges]
        axis = Axis("ignored pixels of a picture, %", least=0, most=100)
        yield _histogram("Pictures by their ignored share", axis, percent, found.ignored)
        counts = list(range(len(found.many)))
        last = int(np.flatnonzero(found.many)[-1]) + 1 if found.many.any() else 1
        yield _histogram("Pictures by the number of their classes", Axis("classes"), counts[:last], found.many[:last])
    if found.brightness.any():
        axis = Axis("mean of a picture, from 0 to 1", least=0, most=1)
        yield _histogram("Pictures by their brightness", axis, edges, found.brightness)
    if len(report.sizes) > 1:
        areas = [(height * width / 1e6, count) for (height, width), count in report.sizes.items()]
        numbers, bins = np.histogram([area for area, _ in areas], BINS, weights=[count for _, count in areas])
        middles = ((bins[1:] + bins[:-1]) / 2).tolist()
        yield _histogram("Pictures by their size before", Axis("megapixels"), middles, numbers)


def _histogram(title: str, x: Axis, at: Sequence[float], counts: NDArray[Any]) -> str:
    points = list(zip(map(float, at), map(float, counts.tolist()), strict=True))
    return stacked_chart(title, x, Axis("pictures"), [Series("pictures", points)])


def _maps(report: Report) -> list[Map]:
    classes, heat, known = _classes(report), report.heat, report.counts
    if heat is None or classes is None or known is None:
        return []
    best = sorted(range(len(classes)), key=lambda number: -known.rows[number])[:MOST_MAPS]
    return [_map(classes.names[number], heat.shares[number]) for number in best if heat.shares[number].any()]


def _map(name: str, shares: NDArray[np.float32]) -> Map:
    most = float(shares.max())
    picture = ramp()[np.round(255 * shares / most).astype(np.uint8)]
    found, data = cv2.imencode(".png", picture[:, :, ::-1])
    assert found, "an array of 8 bits is a PNG"
    return Map(name, _share(most), f"data:image/png;base64,{b64encode(bytes(data)).decode()}")


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
    found = report.sizes.most_common(MOST_SIZES)
    return [(f"{height}x{width}", f"{count:,}", _share(count / every)) for (height, width), count in found]


def _classes(report: Report) -> ClassTable | None:
    return None if report.label is None else report.label.classes


def _share(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 0.1 else f"{100 * share:.1f} %"
