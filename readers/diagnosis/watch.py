"""`watch`: times the steps of a training loop, and prints at its end where the time went."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import torch

from readers.contract.errors import RequestError
from readers.diagnosis.record import BatchSource, Record, Totals
from readers.diagnosis.report import check_report, write_report
from readers.diagnosis.samples import Samples
from readers.diagnosis.source import source_of
from readers.diagnosis.steps import Steps
from readers.diagnosis.verdict import Verdict, verdict
from readers.machine import Machine


class ScalarWriter(Protocol):
    """TensorBoard's SummaryWriter, or another object with its method `add_scalar`."""

    def add_scalar(self, tag: str, value: float, step: int) -> Any: ...


class Watch:
    """A watched loader, as `watch` returns it: iterate it instead of the loader, whose attributes it also has."""

    def __init__(
        self, batches: Iterable[Any], report: str | Path | None, writer: ScalarWriter | None, every: int, quiet: bool
    ) -> None:
        if every < 1:
            raise RequestError(f"every={every}: expected a number of steps from 1 on")
        if report is not None:
            check_report(Path(report))
        self._batches = batches
        self._source = source_of(batches)
        self._report = None if report is None else Path(report)
        self._writer = writer
        self._every = every
        self._quiet = quiet
        self._steps = Steps()
        self._samples: Samples | None = None
        self._written = Totals()

    def __enter__(self) -> Watch:
        self._samples = Samples()
        self._samples.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._samples is not None
        self._samples.stop()
        if self._report is not None:
            write_report(self._report, [self.record()])
        if not self._quiet:
            print(self.verdict(), file=sys.stderr)

    def __iter__(self) -> Iterator[Any]:
        if self._samples is None:
            raise RequestError("watch() needs a with statement: with watch(loader) as batches: for … in batches: …")
        for batch in self._steps.of_pass(self._batches, iter):
            self._write_scalars()
            yield batch
        self._write_scalars()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of an object that is not initialised, as while it is copied
            raise AttributeError(name)
        return getattr(self._batches, name)

    def record(self) -> Record:
        """Return the measurements so far."""
        return record_of(self._source, self._steps, self._samples)

    def verdict(self) -> Verdict:
        """Return the verdict on the measurements so far."""
        return verdict(self.record())

    def _write_scalars(self) -> None:
        """Write scalars every few steps: where the time since the last scalars went, as fractions."""
        writer, now, before = self._writer, self._steps.totals, self._written
        if writer is None or now.steps < before.steps + self._every:
            return
        self._written = Totals(**asdict(now))
        spent = {
            name: getattr(now, name) - getattr(before, name) for name in ("waiting", "copying", "computing", "starting")
        }
        seconds = sum(spent.values())
        for name, part in spent.items():
            writer.add_scalar(f"time/{name}", part / max(seconds, 1e-9), now.steps)
        writer.add_scalar("time/step_ms", 1000 * seconds / max(1, now.steps - before.steps), now.steps)
        if now.gaps > before.gaps:
            idle = (now.idle - before.idle) / (now.gaps - before.gaps)
            writer.add_scalar("time/gpu_idle_ms", 1000 * idle, now.steps)


def watch(
    batches: Iterable[Any],
    *,
    report: str | Path | None = None,
    writer: ScalarWriter | None = None,
    every: int = 50,
    quiet: bool = False,
) -> Watch:
    """Measure where the time of each step goes: `with watch(loader) as batches: for images, labels in batches: …`.

    At the end a verdict is printed to stderr (unless `quiet`), and `report` is written: a page (.html) or all numbers
    (.json). A `writer`, such as TensorBoard's SummaryWriter, gets scalars once in `every` steps.
    """
    return Watch(batches, report, writer, every, quiet)


def record_of(source: BatchSource, steps: Steps, samples: Samples | None) -> Record:
    """Return a record of the steps and samples so far; they can go on."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    totals = Totals(**asdict(steps.totals))
    return Record(
        source, Machine.look().power, gpu, totals, steps.rows(), samples.rows() if samples is not None else ()
    )
