"""The report of a diagnosis: a page with charts over time, or all numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from readers.contract.atomic import write_atomic
from readers.contract.errors import RequestError
from readers.diagnosis.record import Record
from readers.diagnosis.timeline import joined
from readers.diagnosis.verdict import verdict
from readers.report.axes import Axis
from readers.report.chart import Series, line_chart, stacked_chart
from readers.report.page import page, table

TITLE = "What this training waits for"
MOST_BARS = 200
SUFFIXES = (".html", ".json")


def write_report(path: Path, records: Sequence[Record]) -> None:
    """Write a page or JSON, by the suffix of the path. The verdict is about the first record."""
    check_report(path)
    text = to_html(records) if path.suffix == ".html" else json.dumps(to_json(records), indent=1) + "\n"
    write_atomic(path, text)


def check_report(path: Path) -> None:
    """Refuse a path to which no report can be written, before the training and not after it."""
    if path.suffix not in SUFFIXES:
        raise RequestError(f"{path}: expected a name that ends in .html (a page) or .json (all numbers)")
    if not path.absolute().parent.is_dir():
        raise RequestError(f"{path}: its folder does not exist; create it first")


def to_json(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return verdict, parts of the time, use of the machine, and all numbers behind them, for each record."""
    return [
        {
            "verdict": asdict(verdict(record)),
            "parts": {name: record.part(seconds) for name, seconds in _seconds(record)} | {"waited": record.waited},
            "use": asdict(record.use),
            "record": record.to_json(),
        }
        for record in records
    ]


def to_html(records: Sequence[Record]) -> str:
    """Return the report as a page."""
    record = records[0]
    result = verdict(record)
    parts = [f"<p><strong>{escape(result.headline)}</strong></p>", _list("ul", result.evidence)]
    if result.advice:
        advice = [f"{change.action} {change.why}" for change in result.advice]
        parts += ["<h2>What to change, largest gain first</h2>", _list("ol", advice)]
    parts += ["<h2>Where the time of each step goes</h2>", _steps(record), _machine(record), _times(record)]
    if len(records) > 1:
        parts += ["<h2>All loaders</h2>", _others(records)]
    return page(TITLE, "\n".join(parts))


def _list(kind: str, lines: Sequence[str]) -> str:
    return f"<{kind}>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</{kind}>"


def _time_axis(record: Record) -> Axis:
    """Return the time axis that all charts of a record have in common."""
    begin = _begin(record)
    times = [row[0] - begin for row in (*record.steps, *record.samples)] or [0.0]
    return Axis("seconds since the first step", least=min(times), most=max(times))


def _begin(record: Record) -> float:
    return record.steps[0][0] if record.steps else 0.0


def _steps(record: Record) -> str:
    rows = joined([list(row) for row in record.steps], -(-len(record.steps) // MOST_BARS) or 1)
    begin = _begin(record)
    names = ("waiting for data", "copying and finishing", "computing")
    series = [
        Series(name, [(row[0] - begin, 1000 * row[2 + index] / row[1]) for row in rows])
        for index, name in enumerate(names)
    ]
    return stacked_chart("Time of a step", _time_axis(record), Axis("ms"), series)


def _machine(record: Record) -> str:
    begin, time = _begin(record), _time_axis(record)
    rows = [row for row in record.samples if row[2] > 0]

    def line(name: str, column: int, of: float) -> Series:
        return Series(name, [(row[0] - begin, min(100.0, 100 * row[column] / row[2] / of)) for row in rows])

    lines = [
        line("CPU", 3, record.cores),
        line("CPU of this training", 4, record.cores),
        line("waiting for a disk", 5, 1),
    ]
    if any(row[9] for row in rows):
        lines.append(Series("GPU", [(row[0] - begin, 100 * row[8] / row[9]) for row in rows if row[9]]))
    shown = line_chart("Use of the machine", time, Axis("%", most=100.0), lines)
    read = [(row[0] - begin, row[6] / row[2] / 1e6) for row in rows]
    if max((rate for _, rate in read), default=0.0) < 1:
        return shown
    return shown + line_chart("Read from disks", time, Axis("MB/s"), [Series("this training", read)])


def _seconds(record: Record) -> list[tuple[str, float]]:
    totals = record.totals
    return [(name, getattr(totals, name)) for name in ("waiting", "copying", "computing", "starting")]


def _times(record: Record) -> str:
    steps = max(1, record.totals.steps)
    rows = [
        [name, f"{seconds:.2f}", f"{1000 * seconds / steps:.2f}", f"{100 * record.part(seconds):.1f}"]
        for name, seconds in _seconds(record)
    ]
    return table(["", "seconds", "ms a step", "% of the time"], rows)


def _others(records: Sequence[Record]) -> str:
    rows = [
        [
            record.source.name,
            str(record.source.batch or ""),
            str(record.totals.steps),
            f"{record.seconds:.1f}",
            f"{100 * record.waited:.1f}",
        ]
        for record in records
    ]
    return table(["", "batch", "steps", "seconds", "% waiting"], rows)
