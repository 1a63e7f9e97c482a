"""The diagnosis of a training: times are assigned exactly, verdicts fit, and the training itself does not change."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import HANG
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Subset, TensorDataset

from readers import Colour, RandomCrop, RequestError, open_dataset, to_device, watch
from readers.contract.errors import DamagedError
from readers.diagnosis.counters import family, grown, snapshot
from readers.diagnosis.record import BatchSource, Record, Totals
from readers.diagnosis.report import to_html
from readers.diagnosis.source import source_of
from readers.diagnosis.steps import Gaps, Steps
from readers.diagnosis.timeline import Timeline, joined
from readers.diagnosis.verdict import verdict

WORKERS = BatchSource("DataLoader", False, False, 1, 8, 100, False)
THREADS = BatchSource("Loader", True, True, 2, 8, 100, True)
COLOURED = replace(THREADS, steps=("scale=", "colour="))


class Clock:
    """A clock that only the test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def batches(self, count: int, seconds: float) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for number in range(count):
            self.now += seconds
            yield torch.full((2, 3, 4, 4), number), torch.zeros(2, 4, 4)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=300), st.integers(2, 7))
def test_a_timeline_is_bounded_and_its_sums_are_exact(values: list[tuple[int, int]], most: int) -> None:
    timeline = Timeline(most)
    for begin, pair in enumerate(values):
        timeline.add(begin, *pair)
    rows = timeline.rows()
    assert len(rows) <= most
    assert [sum(row[column] for row in rows) for column in (1, 2, 3)] == [
        len(values),
        sum(first for first, _ in values),
        sum(second for _, second in values),
    ]
    begins = [row[0] for row in rows]
    assert begins == sorted(set(begins))
    assert [sum(row[2] for row in joined(rows, 3))] == [sum(row[2] for row in rows)]


def test_each_step_is_split_into_its_parts(clock: Clock) -> None:
    steps = Steps()
    for _ in steps.of_pass(clock, lambda source: source.batches(5, 0.25)):
        clock.now += 0.5
    clock.now += 1000  # between passes: counted nowhere
    for _ in steps.of_pass(clock, lambda source: source.batches(5, 0.25)):
        clock.now += 0.5
    assert steps.totals == Totals(passes=2, steps=10, starting=0.5, waiting=2.0, computing=5.0)
    assert [row[1:] for row in steps.rows()[:2]] == [[1, 0, 0, 0.5, 0], [1, 0.25, 0, 0.5, 0]]


def test_a_pass_that_ends_early_counts_its_last_step(clock: Clock) -> None:
    steps = Steps()
    for number, _ in enumerate(steps.of_pass(clock, lambda source: source.batches(5, 0.25))):
        clock.now += 0.5
        if number == 2:
            break
    assert (steps.totals.steps, steps.totals.computing, steps.totals.waiting) == (3, 1.5, 0.5)


def test_the_work_of_a_device_pipeline_counts_as_copying(clock: Clock) -> None:
    def slow(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        clock.now += 0.125
        return images, labels

    steps = Steps()
    for _ in steps.of_pass(to_device(_Again(clock), "cpu", augment=slow), iter):
        clock.now += 0.5
    totals = steps.totals
    assert totals.copying == pytest.approx(6 * 0.125)
    assert totals.starting + totals.waiting == pytest.approx(6 * 0.25)
    assert totals.computing == pytest.approx(6 * 0.5)


class _Again:
    """Six slow batches for every pass."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __iter__(self) -> Iterator[Any]:
        return self.clock.batches(6, 0.25)


def test_a_watched_loader_is_the_loader(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = open_dataset(packed, split="train", label="index")
    plain, other = (train.loader(4, shuffle=True, seed=3) for _ in range(2))
    expected = [labels.clone() for _ in range(2) for _, labels in plain]
    with watch(other) as batches:
        assert len(batches) == len(plain)
        found = [labels.clone() for _ in range(2) for _, labels in batches]
        assert batches.state_dict() == plain.state_dict()
        batches.set_epoch(7)
        assert other.order.epoch == 7
    assert all(map(torch.equal, found, expected))
    assert len(found) == len(expected)
    assert batches.record().totals.steps == 12
    assert batches.record().source == BatchSource("Loader", True, True, other.threads, 4, 6, False)
    printed = capsys.readouterr().err
    assert "Only 12 steps were measured" in printed
    assert f"Loader (batches of 4, {other.threads} threads, a pack)" in printed


def test_the_facts_about_a_loader(packed: Path) -> None:
    train = open_dataset(packed, split="train", label="index")
    assert source_of(DataLoader(Subset(train, [0, 1]), 2, num_workers=1)) == BatchSource(
        "DataLoader", True, False, 1, 2, 1, False
    )
    assert source_of(to_device(DataLoader(TensorDataset(torch.zeros(2)), 1), "cpu")) == BatchSource(
        "DataLoader", False, False, 0, 1, 2, True
    )
    coloured = train.loader(2, crop=RandomCrop((8, 8), scale=(0.5, 2)), colour=Colour(0.2), normalize=True)
    assert source_of(coloured.to("cpu")).steps == ("scale=", "colour=", "normalize=", "dtype=")
    stored = open_dataset(packed, split="train")
    assert source_of(stored.loader(2, colour=Colour(0.2), on="device").to("cpu")).steps == ()
    assert source_of(iter([])) == BatchSource("list_iterator", False, False, None, None, None, False)


def test_reports(tmp_path: Path) -> None:
    with watch([torch.zeros(1)] * 30, report=tmp_path / "waits.json", quiet=True) as batches:
        for _ in batches:
            time.sleep(0.01)
    (document,) = json.loads((tmp_path / "waits.json").read_text())
    assert document["verdict"]["bottleneck"] == "model"
    assert document["parts"]["computing"] > 0.9
    record = Record.from_json(document["record"], "waits.json")
    assert record.to_json() == document["record"]
    assert record.totals.steps == 30
    page = to_html([record, replace(record, source=replace(record.source, name="<script>"))])
    assert "The model is the bottleneck" in page
    assert "<script>" not in page
    for part in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>")
    assert page.count("</svg>") >= 2


def test_all_charts_of_a_report_have_the_same_time_axis(tmp_path: Path) -> None:
    with watch([torch.zeros(1)] * 3, report=tmp_path / "waits.json", quiet=True) as batches:
        list(batches)
    (document,) = json.loads((tmp_path / "waits.json").read_text())
    record = replace(
        Record.from_json(document["record"], "waits.json"),
        steps=[[100.0 + step, 1.0, 0.1, 0.1, 0.7] for step in range(20)],
        samples=[[97.3 + 0.5 * number, 0.5, 0.5, 0.3, 0.2, 0.1, 9e6, 0.0, 0.0, 0.0] for number in range(51)],
    )
    ticks = []
    for part in to_html([record]).split("<svg")[1:]:
        svg = ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>")
        texts = [text for text in svg.iter() if text.tag.endswith("text") and text.get("text-anchor") == "middle"]
        ticks.append([(text.get("x"), text.text) for text in texts])
    assert len(ticks) >= 2
    assert all(each == ticks[0] for each in ticks)
    assert len(ticks[0]) > 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["waits.json"]


@pytest.mark.parametrize("document", [None, [], {}, {"version": 1}, {"version": 1, "source": {}, "totals": {}}])
def test_documents_that_are_not_records_are_refused(document: Any) -> None:
    with pytest.raises(DamagedError, match=r"x\.json: is not a diagnosis"):
        Record.from_json(document, "x.json")


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="with statement"):
        next(iter(watch([1])))
    with pytest.raises(RequestError, match="every=0"):
        watch([1], every=0)
    for name in ("waits.pdf", "missing/waits.html"):
        with pytest.raises(RequestError, match=name):
            watch([1], report=tmp_path / name)


def test_scalars_for_tensorboard(clock: Clock) -> None:
    written: list[tuple[str, float, int]] = []

    class Writer:
        def add_scalar(self, tag: str, value: float, step: int) -> None:
            written.append((tag, value, step))

    with watch(_Again(clock), writer=Writer(), every=3, quiet=True) as batches:
        for _ in batches:
            clock.now += 0.75
    assert {tag for tag, _, _ in written} == {
        f"time/{name}" for name in ("waiting", "copying", "computing", "starting", "step_ms")
    }
    assert [(value, step) for tag, value, step in written if tag == "time/step_ms"] == [(1000, 3), (1000, 6)]
    assert [value for tag, value, _ in written if tag == "time/waiting"] == pytest.approx([0.5 / 3, 0.25])


def record(source: BatchSource, use: tuple[float, float, float, float] = (0.3, 0.3, 0, 0), **totals: float) -> Record:
    """Return a record of 100 steps that took 10 s; `use` is CPU, our own CPU, waiting for disks, MB/s."""
    cpu, own, stalled, read = use
    samples = [[100.0, 4, 10.0, 40 * cpu, 40 * own, 10 * stalled, 1e7 * read, 4e9, 0.0, 0.0]]
    counts = Totals(passes=2, steps=100, **totals)  # type: ignore[arg-type]
    return Record(source, 4.0, None, counts, [[100.0, 100, 0.0, 0.0, 10.0, 0.0]], samples)


@pytest.mark.parametrize(
    ("measured", "bottleneck", "first"),
    [
        (record(WORKERS, computing=9.9, waiting=0.1), "model", "Make the model's step cheaper"),
        (record(WORKERS, (1.0, 0.9, 0, 0), computing=9.9, waiting=0.1), "model", "Pack the data"),
        (record(WORKERS, (1.0, 0.9, 0, 0), computing=4, waiting=6), "cpu", "Pack the data"),
        (record(WORKERS, computing=4, waiting=6), "data", "Pack the data"),
        (record(WORKERS, (0.4, 0.4, 0.5, 90), computing=4, waiting=6), "disk", "Copy the pack to a faster place"),
        (record(THREADS, (0.4, 0.4, 0.5, 90), computing=4, waiting=6), "disk", "Copy the pack to a faster place"),
        (record(replace(WORKERS, packed=True), computing=4, waiting=6), "data", "Use train.loader"),
        (record(THREADS, (0.95, 0.9, 0, 0), computing=4, waiting=6), "cpu", "Let the CPU do less"),
        (record(COLOURED, (0.95, 0.9, 0, 0), computing=4, waiting=6), "cpu", "Do less on the CPU: scale=, colour=."),
        (record(THREADS, computing=4, waiting=6), "data", "Read further ahead"),
        (record(WORKERS, computing=5, copying=5), "copying", "Copy batches ahead of use"),
        (record(THREADS, computing=5, copying=5), "copying", "Do less to each batch"),
        (record(WORKERS, computing=5, starting=5), "starting", "Keep the workers"),
        (record(THREADS, computing=5, starting=5), "starting", "Make passes longer"),
    ],
)
def test_verdicts(measured: Record, bottleneck: str, first: str) -> None:
    found = verdict(measured)
    assert found.bottleneck == bottleneck
    assert found.advice[0].action.startswith(first)
    if bottleneck != "model":
        assert "times as fast" in found.headline


def test_the_gpus_own_events_count_more_than_the_programs_clock() -> None:
    ahead = record(THREADS, computing=4, waiting=6, gaps=99, idle=0.05, idle_steps=3)  # the program waited, not the GPU
    assert verdict(ahead).bottleneck == "model"
    behind = record(THREADS, computing=9, waiting=1, gaps=99, idle=6.0, idle_steps=99)
    assert verdict(behind).bottleneck == "data"
    assert "the GPU waits for data 61 % of the time" in verdict(behind).headline.lower().replace("gpu", "GPU")
    busy = replace(ahead, samples=[[*ahead.samples[0][:8], 1.2, 4.0]])
    assert verdict(busy).advice[0].action.startswith("Give the GPU more at once")


def test_other_programs_on_the_machine_are_named() -> None:
    found = verdict(record(THREADS, (0.99, 0.2, 0, 0), computing=4, waiting=6))
    assert "others 79 %" in str(found)


@given(
    st.lists(st.floats(0, 1e6), min_size=4, max_size=4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.sampled_from([WORKERS, THREADS, replace(WORKERS, packed=True), replace(WORKERS, workers=None, batch=None)]),
    st.integers(0, 200),
)
def test_there_is_always_a_verdict(seconds: list[float], use: list[float], source: BatchSource, steps: int) -> None:
    waiting, copying, computing, starting = seconds
    measured = record(source, tuple(use), waiting=waiting, copying=copying, computing=computing, starting=starting)  # type: ignore[arg-type]
    found = verdict(replace(measured, totals=replace(measured.totals, steps=steps)))
    assert found.headline
    assert found.evidence
    gains = [advice.gain for advice in found.advice]
    assert gains == sorted(gains, reverse=True)
    assert (found.bottleneck == "unknown") == (steps < 20)


def _burn(until: float) -> None:
    while time.monotonic() < until:
        pass


def test_the_use_of_the_machine_is_measured() -> None:
    child = multiprocessing.get_context("fork").Process(target=_burn, args=(time.monotonic() + HANG,))
    child.start()
    try:
        processes = family(os.getpid())
        assert os.getpid() in processes
        assert child.pid in processes
        before = snapshot(processes)
        deadline = time.monotonic() + HANG
        while grown(before.own, snapshot(processes).own) < 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        now = snapshot(processes)
        assert now.busy > before.busy
        assert now.available > 0
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gaps_are_as_long_as_the_gpu_waited() -> None:
    gaps = Gaps()
    work = torch.zeros(1 << 24, device="cuda")
    for pause in (0.0, 0.05, 0.0):
        gaps.ended()
        time.sleep(pause)
        gaps.began()
        for _ in range(20):
            work += 1
        if not pause:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    first, second, third = gaps.measured()
    assert 0.045 < second < 0.2
    assert first < 0.02
    assert third < 0.02
