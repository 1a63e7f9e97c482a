"""The decode loop: it decodes, resizes and maps pictures to classes on all cores, and keeps and writes nothing.

It is the rate that a machine reaches with the libraries of the packer when they are called as directly as possible.
"""

from __future__ import annotations

import multiprocessing
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from scenes.camera import image_path, label_path
from scenes.street import CLASSES

from packer.pixels.resize import nearest_source
from packer.workers.memory import keep_memory

SIZE = 512
"""The stored height and width."""
CHUNK = 8


@dataclass(frozen=True)
class Decoded:
    """Wall time and CPU time of a run, in seconds, and the CRC of each pair if it was asked for."""

    seconds: float
    cpu: float
    checksums: tuple[int, ...]


def decode_loop(
    raw: Path, pairs: int, workers: int, colours: bool = False, checked: bool = False, side: int = SIZE
) -> Decoded:
    """Start warm processes and run once over the pairs of a folder."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, _start, (str(raw), colours, checked, side)) as pool:
        pool.map(_pair, [0] * 8 * workers, chunksize=1)
        started = time.perf_counter()
        done: Sequence[tuple[float, int]] = list(pool.imap(_pair, range(pairs), CHUNK))
        seconds = time.perf_counter() - started
    return Decoded(seconds, sum(cpu for cpu, _ in done), tuple(crc for _, crc in done))


class Loop:
    """The state of a process between pairs."""

    def __init__(self, raw: Path, colours: bool, checked: bool, side: int) -> None:
        self._raw, self._colours, self._checked, self._side = raw, colours, checked, side
        self._class_of = np.full(1 << 24 if colours else 256, 255, np.uint8)
        for number, (red, green, blue) in enumerate(CLASSES.values()):
            self._class_of[blue << 16 | green << 8 | red if colours else number] = number

    def pair(self, number: int) -> int:
        """Decode a pair. Return its CRC as the receipt of a shard has it, or 0 if that is not checked."""
        image = simplejpeg.decode_jpeg(image_path(self._raw, number).read_bytes(), "RGB")
        fitted = cv2.resize(image, (self._side, self._side), interpolation=cv2.INTER_AREA)
        label = self._classes(np.frombuffer(label_path(self._raw, number).read_bytes(), np.uint8))
        rows, columns = (nearest_source(side, self._side) for side in label.shape)
        label = label.take(rows, axis=0).take(columns, axis=1)
        if not self._checked:
            return 0
        return zlib.crc32(label.tobytes(), zlib.crc32(fitted.transpose(2, 0, 1).tobytes()))

    def _classes(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the class of every pixel."""
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB if self._colours else cv2.IMREAD_UNCHANGED)
        assert pixels is not None
        if not self._colours:
            return np.asarray(cv2.LUT(pixels, self._class_of))
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA)
        return self._class_of.take(pixels.view("<u4")[..., 0] & 0xFFFFFF, mode="clip")


_loops: list[Loop] = []


def _start(raw: str, colours: bool, checked: bool, side: int) -> None:
    """Set up a new process: one thread, and memory that is kept once it was allocated."""
    cv2.setNumThreads(0)
    keep_memory()
    _loops.append(Loop(Path(raw), colours, checked, side))


def _pair(number: int) -> tuple[float, int]:
    before = time.process_time()
    checksum = _loops[0].pair(number)
    return time.process_time() - before, checksum
