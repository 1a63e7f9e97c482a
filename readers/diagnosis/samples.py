"""`Samples`: the use of the machine, measured by a thread during a training."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from readers.diagnosis.counters import Snapshot, family, grown, snapshot
from readers.diagnosis.timeline import Row, Timeline

try:
    import pynvml
except ImportError:  # then the use of the GPU is unknown
    pynvml = None

INTERVAL = 0.25
FAMILY_SHARE = 200
"""The search for child processes may take at most 1/200 of the time."""


class Samples:
    """A thread that takes samples between `start` and `stop`, and calls `on_sample` after every sample."""

    def __init__(self, on_sample: Callable[[], None] = lambda: None) -> None:
        self._timeline = Timeline()
        self._on_sample = on_sample
        self._stopped = threading.Event()
        # A daemon: the interpreter joins other threads before atexit functions, and such a function stops this thread.
        self._thread = threading.Thread(target=self._run, name="segpack-samples", daemon=True)
        self._family: list[int] = []
        self._next_search = 0.0
        self._gpu: Gpu | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take a last sample, and end the thread."""
        self._stopped.set()
        self._thread.join()

    def rows(self) -> list[Row]:
        """Return rows of numbers: begin, number of samples, and sums over these.

        The sums are seconds, seconds of CPU used by all programs, by this program, and of waiting for disks; bytes
        read, and bytes of free memory; the busy fractions of the GPU, and the number of samples that have these.
        """
        return self._timeline.rows()

    def _run(self) -> None:
        before = self._snapshot()
        while not self._stopped.wait(INTERVAL):
            before = self._sample(before)
            self._on_sample()
        self._sample(before)

    def _sample(self, before: Snapshot) -> Snapshot:
        now = self._snapshot()
        if self._gpu is None:
            self._gpu = Gpu.of_torch()
        busy = self._gpu.busy() if self._gpu is not None else None
        self._timeline.add(
            before.time,
            now.time - before.time,
            now.busy - before.busy,
            grown(before.own, now.own),
            now.stalled - before.stalled,
            grown(before.read, now.read),
            now.available,
            busy or 0.0,
            float(busy is not None),
        )
        return now

    def _snapshot(self) -> Snapshot:
        begun = time.perf_counter()
        if begun >= self._next_search:
            with suppress(OSError):
                self._family = family(os.getpid())
            took = time.perf_counter() - begun
            self._next_search = begun + max(1.0, FAMILY_SHARE * took)
        return snapshot(self._family)


class Gpu:
    """The GPU that PyTorch uses, whose driver reports how busy it is. This needs nvidia-ml-py."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @classmethod
    def of_torch(cls) -> Gpu | None:
        """Return the GPU of PyTorch; None while PyTorch uses none, or if its use cannot be read."""
        if pynvml is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return None
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            pynvml.nvmlInit()
            gpu = cls(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{facts.uuid}"))
            gpu.busy()
        except (AttributeError, pynvml.NVMLError):  # an old PyTorch, or a driver that does not report it
            return None
        return gpu

    def busy(self) -> float | None:
        """Return the fraction of the last moment in which the GPU was busy; None if that cannot be read any more."""
        try:
            return float(pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu) / 100
        except pynvml.NVMLError:
            return None
