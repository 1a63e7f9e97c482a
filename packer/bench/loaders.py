"""`TrialRunner`: read the same shuffled rows with each kind of loader and time it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader

from packer.bench.copy_loop import CopyLoop
from packer.bench.request import BenchRequest
from packer.bench.settings import LOADER, SLOTS, LoaderSettings
from packer.bench.workload import Workload
from packer.errors import EngineError, UsageError
from packer.signals import deferred_signals
from readers import Order, RandomCrop, SlotDataLoader, open_dataset
from readers.contract.manifest import ALL, Manifest
from readers.pack import Pack

NOTHING_ELSE: Mapping[str, Any] = {}
THREADS = "segpack-loader"
"""The prefix of the names of a loader's threads."""


class TrialRunner:
    """Run loaders over a shuffled split.

    Call `first_pass` first: trials read only the rows that it has read, so that they are in memory.
    """

    def __init__(self, request: BenchRequest) -> None:
        out, crop = request.out, request.crop
        self._seed = secrets.randbits(32)  # another order in each run, so that the first pass also reads cold rows
        split = request.split or _default_split(Manifest.load(out))
        options: dict[str, Any] = {"label": request.labels, "fields": request.fields}
        self.dataset = open_dataset(out, split, **options)
        self._for_workers = open_dataset(out, split, **options, transform=RandomCrop(crop) if crop else None)
        self.pack = Pack.open(out, self.dataset.manifest.generation)
        self.pack.select(options["fields"])
        self.crop = crop
        self.rows: list[int] = []
        if not len(self.dataset):
            raise UsageError(f"{out}: the split {split!r} has no rows to read")
        if self.dataset.fields[0].native and crop is None:
            such = "--crop 64x128x128" if self.dataset.fields[0].is_volume else "--crop 512x512"
            raise UsageError(f"{out}: its images have different sizes; set the crop of batches, such as {such}")

    @property
    def pack_rows(self) -> range:
        """The rows of the pack that belong to the split."""
        ranges = [rows for split, _, rows in self.pack.splits() if split.name == self.dataset.split]
        return range(self.pack.manifest.rows) if self.dataset.split == ALL else ranges[0]

    @property
    def workload(self) -> Workload:
        """The rows that trials read, and the bytes of a delivered one."""
        sides = self.crop or self.dataset.fields[0].size or ()
        row_bytes = sum(field.row_bytes_at(*sides) for field in self.dataset.fields)
        return Workload(len(self.rows), len(self.rows) == len(self.dataset), row_bytes)

    def first_pass(self, batch: int, threads: int, seconds: float) -> float:
        """Read as a training begins, until the time is over or all rows are read. Return the seconds that it took."""
        started, rows = time.perf_counter(), 0
        for first, *_ in self._loader(LoaderSettings(LOADER, batch, threads)):
            rows += len(first)
            if time.perf_counter() - started >= seconds:
                break
        taken = time.perf_counter() - started
        _join_loader_threads()
        self.rows = list(islice(Order(len(self.dataset), seed=self._seed), rows))
        return taken

    def copy_loop(self, threads: int, batch: int) -> CopyLoop:
        """Return a copy loop over the same rows, into the memory of such a batch."""
        first = self.pack_rows.start
        return CopyLoop(self.pack, [first + row for row in self.rows], self.crop, threads, batch)

    def rate(self, settings: LoaderSettings, seconds: float, options: Mapping[str, Any] = NOTHING_ELSE) -> float:
        """Return the samples per second of a loader after its warm-up; `options` are more of its options."""
        try:
            batches = (
                self._loader_batches(settings, options)
                if settings.kind == LOADER
                else self._data_loader_batches(settings)
            )
            with closing(batches):
                rate = _rate(batches, settings, len(self.rows), seconds)
        except RuntimeError as error:  # PyTorch raises it for failed worker processes
            raise EngineError(f"{settings.kind} with {settings.workers} workers failed: {error}") from error
        _join_loader_threads()
        return rate

    def _loader(self, settings: LoaderSettings, options: Mapping[str, Any] = NOTHING_ELSE) -> Any:
        reading = {"crop": self.crop, "threads": settings.workers, "ahead": settings.ahead, **options}
        return self.dataset.loader(settings.batch, shuffle=True, seed=self._seed, **reading)

    def _loader_batches(
        self, settings: LoaderSettings, options: Mapping[str, Any] = NOTHING_ELSE
    ) -> Generator[Any, None, None]:
        """Yield epochs of a loader. If trials do not read all rows, each epoch stops after the same first rows."""
        loader = self._loader(settings, options)
        count = len(loader) if self.workload.complete else len(self.rows) // settings.batch
        while True:
            yield from islice(loader, count)

    def _data_loader_batches(self, settings: LoaderSettings) -> Generator[Any, None, None]:
        """Yield epochs of a DataLoader over the same rows. Its workers persist: their start is not measured."""
        kind = SlotDataLoader if settings.kind == SLOTS else DataLoader
        options: dict[str, Any] = {"batch_size": min(settings.batch, len(self.rows)), "num_workers": settings.workers}
        batches: Any = None
        loader: Any = kind(self._for_workers, sampler=self.rows, persistent_workers=bool(settings.workers), **options)
        try:
            while True:
                with deferred_signals():  # an interrupt would leave half-started processes, …
                    batches = iter(loader)
                yield from batches
        finally:
            with deferred_signals():  # … or get lost while they end, when the last reference to the loader goes
                batches = loader = None


def _default_split(manifest: Manifest) -> str:
    names = [split.name for split in manifest.splits if split.rows]
    return "train" if "train" in names or not names else names[0]


def _rate(batches: Iterator[Any], settings: LoaderSettings, rows: int, seconds: float) -> float:
    """Return the samples per second. New processes warm up longer: they have to map all rows, once in a training."""
    warm_up = max(settings.warm_up, -(-rows // settings.batch) if settings.processes else 0)
    started = time.perf_counter()
    for _ in islice(batches, warm_up):
        if time.perf_counter() - started >= seconds:
            break
    started, done = time.perf_counter(), 0
    for number, (first, *_) in enumerate(batches, 1):
        done += len(first)
        now = time.perf_counter()
        if number >= settings.least_batches and now - started >= seconds:
            break
    return done / (now - started)


def _join_loader_threads() -> None:
    """Wait until the threads of a closed loader have ended, so that they do not slow down the next trial."""
    for thread in threading.enumerate():
        if thread.name.startswith(THREADS) and thread.is_alive():
            thread.join()
