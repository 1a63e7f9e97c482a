"""`Gpu`: how busy the driver says the GPU is, where there is one and nvidia-ml-py is installed."""

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
except ImportError:  # then only its events tell
    pynvml = None


class Gpu:
    """The device that PyTorch uses; `of_torch` finds it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @classmethod
    def of_torch(cls) -> Gpu | None:
        """None while PyTorch uses no GPU, or where nothing tells how busy it is."""
        if pynvml is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return None
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            pynvml.nvmlInit()
            gpu = cls(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{facts.uuid}"))
            gpu.busy()
        except (AttributeError, pynvml.NVMLError):  # an old PyTorch, or a driver that does not tell
            return None
        return gpu

    def busy(self) -> float | None:
        """The part of the last moment in which something ran on it; None if it does not tell any more."""
        try:
            return float(pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu) / 100
        except pynvml.NVMLError:
            return None


INTERVAL = 0.25
FAMILY_SHARE = 200
"""Looking for child processes may take one part in so many of the time."""


class Samples:
    """Between `start` and `stop`; `each` is called by the thread after each sample."""

    def __init__(self, each: Callable[[], None] = lambda: None) -> None:
        self._timeline = Timeline()
        self._each = each
        self._stopped = threading.Event()
        # What ends with the interpreter, whose atexit functions still need it, must be a daemon.
        self._thread = threading.Thread(target=self._run, name="segpack-samples", daemon=True)
        self._family: list[int] = []
        self._look_again = 0.0
        self._gpu: Gpu | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take one more sample, and end."""
        self._stopped.set()
        self._thread.join()

    def rows(self) -> list[Row]:
        """Begin, samples, and sums of seconds: in all, of used CPU, of our own, of stalls; of bytes read and of bytes
        available; of parts of the GPU that were busy, and of samples that know of it."""
        return self._timeline.rows()

    def _run(self) -> None:
        before = self._snapshot()
        while not self._stopped.wait(INTERVAL):
            before = self._sample(before)
            self._each()
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
        if begun >= self._look_again:
            with suppress(OSError):
                self._family = family(os.getpid())
            took = time.perf_counter() - begun
            self._look_again = begun + max(1.0, FAMILY_SHARE * took)
        return snapshot(self._family)
