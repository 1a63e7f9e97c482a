"""The time to decode a pair in one thread: as the pipeline of raw files does it, and with OpenCV alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.label_rules import COLOUR
from train_demo.packed import Packed
from train_demo.raw_pairs import RawPairs

MOST = 64


@dataclass(frozen=True)
class Decoding:
    """Median milliseconds for a pair. `same` is the share of pairs that OpenCV decodes to the same bytes, or to
    images that differ from ours by one at most: it rounds some halves the other way."""

    ours: float
    opencv: float
    same: float


def decode_cost(packed: Packed) -> Decoding:
    """Measure the first pairs; both ways take turns."""
    ours, plain = RawPairs(packed), OpenCv(packed)
    rows = range(min(MOST, len(ours)))
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)
    same, mine, theirs = 0, list[float](), list[float]()
    for row in rows:
        pair = _timed(ours.__getitem__, row, mine)
        other = _timed(plain.pair, row, theirs)
        image, label = (part.numpy() for part in pair)
        same += np.abs(image.astype(np.int16) - other[0]).max() <= 1 and np.array_equal(label, other[1])
    cv2.setNumThreads(threads)
    return Decoding(statistics.median(mine), statistics.median(theirs), same / len(rows))


def _timed(make: Callable[[int], Any], row: int, times: list[float]) -> Any:
    started = time.perf_counter()
    made = make(row)
    times.append((time.perf_counter() - started) * 1e3)
    return made


class OpenCv:
    """Decoding with OpenCV and a look-up table of numpy, as most training scripts do it."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        table = packed.classes
        self._as_index = packed.label_rules.codec != COLOUR
        self._class_of = np.full(1 << 16 if self._as_index else 1 << 24, table.ignore_index, table.index_dtype)
        for number, entry in enumerate(table.classes):
            for value in entry.values if self._as_index else ():
                self._class_of[value] = number
            for red, green, blue, *_ in () if self._as_index else entry.colours:
                self._class_of[red | green << 8 | blue << 16] = number

    def pair(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the image in planes, and the classes of its pixels."""
        piece, raw = self._packed.pieces[row], self._packed.raw
        tall, wide = self._packed.recipe.geometry.size or (0, 0)
        image = cv2.imread(str(raw / piece.ref.parts[0]), cv2.IMREAD_COLOR_RGB)
        flags = cv2.IMREAD_UNCHANGED if self._as_index else cv2.IMREAD_COLOR_RGB
        label = cv2.imread(str(raw / piece.ref.parts[1]), flags)
        assert image is not None
        assert label is not None
        small = cv2.resize(image, (wide, tall), interpolation=cv2.INTER_AREA)
        pixels: NDArray[Any] = cv2.resize(label, (wide, tall), interpolation=cv2.INTER_NEAREST_EXACT).astype(np.uint32)
        if pixels.ndim == 3 and not self._as_index:
            pixels = pixels[..., 0] | pixels[..., 1] << 8 | pixels[..., 2] << 16
        elif pixels.ndim == 3:  # OpenCV decodes a palette to colours; its indices are lost
            pixels = pixels[..., 0]
        return np.ascontiguousarray(small.transpose(2, 0, 1)), self._class_of[pixels]
