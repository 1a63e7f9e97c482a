"""`Ground`: the rows that trials read, and every way to read them that a training has."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from torch.utils.data import DataLoader

from packer.bench.copy_loop import CopyLoop
from packer.bench.settings import LOADER, SLOTS, Setting
from packer.errors import EngineError, UsageError
from packer.signals import deferred_signals
from readers import Order, RandomCrop, SlotDataLoader, open_dataset
from readers.contract.manifest import ALL, Manifest
from readers.pack import Pack

LabelForm = Literal["onehot", "index"]
THREADS = "segpack-loader"
"""What the names of a loader's threads begin with."""


class Ground:
    """A split, shuffled. After `first_pass` the rows that were read then are in memory, and trials read only these."""

    def __init__(self, out: Path, split: str | None, labels: LabelForm | None, crop: tuple[int, int] | None) -> None:
        self._seed = secrets.randbits(32)  # another order each time: what an earlier run has read is not all there is
        split = split or _default_split(Manifest.load(out))
        self.dataset = open_dataset(out, split, label=labels)
        self._for_workers = open_dataset(out, split, label=labels, transform=RandomCrop(crop) if crop else None)
        self.pack = Pack.open(out, self.dataset.manifest.generation)
        self.crop = crop
        self.rows: list[int] = []
        if not len(self.dataset):
            raise UsageError(f"{out}: the split {split!r} has no rows to read")
        if self.dataset.image_field.native and crop is None:
            raise UsageError(f"{out}: each picture has a size of its own; say what batches are cut to: --crop 512x512")

    @property
    def pack_rows(self) -> range:
        """Where in the pack the split lies."""
        found = [rows for split, _, rows in self.pack.splits() if split.name == self.dataset.split]
        return range(self.pack.manifest.rows) if self.dataset.split == ALL else found[0]

    @property
    def row_bytes(self) -> int:
        """Of a row as it is delivered."""
        size = self.crop or self.dataset.image_field.size
        assert size is not None
        return self.dataset.image_field.row_bytes_at(*size) + self.dataset.label_field.row_bytes_at(*size)

    @property
    def slots(self) -> bool:
        """Whether a SlotDataLoader can read this."""
        return self.crop is None

    @property
    def every(self) -> bool:
        """Whether trials read all rows."""
        return len(self.rows) == len(self.dataset)

    def first_pass(self, batch: int, threads: int, seconds: float) -> float:
        """Read as a training begins, for so long or all rows; the seconds that it took."""
        started, rows = time.perf_counter(), 0
        for images, _ in self._loader(Setting(LOADER, batch, threads)):
            rows += len(images)
            if time.perf_counter() - started >= seconds:
                break
        taken = time.perf_counter() - started
        _settle()
        self.rows = list(islice(Order(len(self.dataset), seed=self._seed), rows))
        return taken

    def copy_loop(self, threads: int, batch: int) -> CopyLoop:
        """Over the same rows, into the memory of such a batch."""
        first = self.pack_rows.start
        return CopyLoop(self.pack, [first + row for row in self.rows], self.crop, threads, batch)

    def rate(self, setting: Setting, seconds: float) -> float:
        """Samples a second, of a loader that has come into its stride."""
        try:
            with closing(self._looped(setting) if setting.kind == LOADER else self._worked(setting)) as batches:
                rate = _rate(batches, setting, len(self.rows), seconds)
        except RuntimeError as error:  # what PyTorch says of worker processes that fail
            raise EngineError(f"{setting.kind} with {setting.workers} workers failed: {error}") from error
        _settle()
        return rate

    def _loader(self, setting: Setting) -> Any:
        return self.dataset.loader(
            setting.batch,
            shuffle=True,
            seed=self._seed,
            crop=self.crop,
            threads=setting.workers,
            ahead=setting.ahead,
        )

    def _looped(self, setting: Setting) -> Generator[Any, None, None]:
        """Passes of a loader; one that does not read all rows is left early, and begins again with the same."""
        loader = self._loader(setting)
        many = len(loader) if self.every else len(self.rows) // setting.batch
        while True:
            yield from islice(loader, many)

    def _worked(self, setting: Setting) -> Generator[Any, None, None]:
        """Passes of a DataLoader over the same rows, whose workers stay: what starting them takes is not measured."""
        kind = SlotDataLoader if setting.kind == SLOTS else DataLoader
        options: dict[str, Any] = {"batch_size": min(setting.batch, len(self.rows)), "num_workers": setting.workers}
        batches: Any = None
        loader: Any = kind(self._for_workers, sampler=self.rows, persistent_workers=bool(setting.workers), **options)
        try:
            while True:
                with deferred_signals():  # an interrupt would leave processes half started, …
                    batches = iter(loader)
                yield from batches
        finally:
            with deferred_signals():  # … or get lost where they are ended, which is as the last reference goes
                batches = loader = None


def _default_split(manifest: Manifest) -> str:
    names = [split.name for split in manifest.splits if split.rows]
    return "train" if "train" in names or not names else names[0]


def _rate(batches: Iterator[Any], setting: Setting, rows: int, seconds: float) -> float:
    """New processes have yet to map all rows, which costs them once in a training: they warm up longer."""
    warm_up = max(setting.warm_up, -(-rows // setting.batch) if setting.processes else 0)
    started = time.perf_counter()
    for _ in islice(batches, warm_up):
        if time.perf_counter() - started >= seconds:
            break
    started, done = time.perf_counter(), 0
    for number, (images, _) in enumerate(batches, 1):
        done += len(images)
        now = time.perf_counter()
        if number >= setting.least_batches and now - started >= seconds:
            break
    return done / (now - started)


def _settle() -> None:
    """Let threads that were left at a batch end, so that they do not slow down the next trial."""
    for thread in threading.enumerate():
        if thread.name.startswith(THREADS) and thread.is_alive():
            thread.join()
