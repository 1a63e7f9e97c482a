"""The decode loop: it decodes, resizes and maps pictures to classes on all cores, and keeps and writes nothing.

`Loop` is the rate that a machine reaches with the libraries of the packer when they are called as directly as possible,
`KernelLoop` the rate that it reaches with the packer's kernels.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from scenes.camera import STREET, image_path, label_path
from scenes.shapes import Shape
from scenes.street import CLASSES

from packer.decoding import plain_png
from packer.pixels import area, class_picture, stored_label
from packer.pixels.class_lookup import IGNORE
from packer.pixels.nearest_lines import nearest_source
from packer.pixels.resize import Geometry
from packer.workers.memory import keep_memory

SIZE = 512
"""The stored height and width."""
CHUNK = 8
Checksums: TypeAlias = "tuple[int, int]"
"""The CRC of the image and that of the label of a pair, as the receipt of a shard has them."""


@dataclass(frozen=True)
class Decoded:
    """Wall time and CPU time of a run, in seconds, and the CRCs of each pair, 0 if they were not asked for."""

    seconds: float
    cpu: float
    checksums: tuple[Checksums, ...]


def decode_loop(
    raw: Path,
    pairs: int,
    workers: int,
    colours: bool = False,
    checked: bool = False,
    shape: Shape = STREET,
    kernels: bool = False,
) -> Decoded:
    """Start warm processes and run once over the pairs of a folder."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, _start, (kernels, str(raw), colours, checked, shape)) as pool:
        pool.map(_pair, [0] * 8 * workers, chunksize=1)
        started = time.perf_counter()
        done: Sequence[tuple[float, Checksums]] = list(pool.imap(_pair, range(pairs), CHUNK))
        seconds = time.perf_counter() - started
    return Decoded(seconds, sum(cpu for cpu, _ in done), tuple(crc for _, crc in done))


class Loop:
    """The state of a process between pairs."""

    def __init__(self, raw: Path, colours: bool, checked: bool, shape: Shape) -> None:
        self._raw, self._colours, self._checked, self._shape = raw, colours, checked, shape
        self._class_of = np.full(1 << 24 if colours else 256, 255, np.uint8)
        for number, (red, green, blue) in enumerate(CLASSES.values()):
            self._class_of[blue << 16 | green << 8 | red if colours else number] = number

    def pair(self, number: int) -> Checksums:
        """Decode a pair. Return its CRCs, or 0 if they are not checked."""
        image = self._decoded(image_path(self._raw, number, self._shape).read_bytes())
        label = self._classes(np.frombuffer(label_path(self._raw, number).read_bytes(), np.uint8))
        if self._checked:
            return self._checksum(image, label)
        self._fitted(image, label)
        return 0, 0

    def _decoded(self, data: bytes) -> NDArray[Any]:
        if self._shape.suffix == ".jpg":
            return np.asarray(simplejpeg.decode_jpeg(data, "RGB"))
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        assert pixels is not None
        return pixels

    def _fitted(self, image: NDArray[Any], label: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return both at the stored size, as directly as the libraries do it."""
        (height, width), (tall, wide) = image.shape[:2], self._shape.stored
        if self._shape.fit == "letterbox":
            scale = min(tall / height, wide / width)
            height, width = round(height * scale), round(width * scale)
        else:
            height, width = tall, wide
        shrinks = height <= image.shape[0] and width <= image.shape[1]
        image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        rows, columns = (nearest_source(*sides) for sides in zip(label.shape, (height, width), strict=True))
        label = label.take(rows, axis=0).take(columns, axis=1)
        if (height, width) == (tall, wide):
            return image, label
        top, left = (tall - height) // 2, (wide - width) // 2
        edges = top, tall - height - top, left, wide - width - left
        return (
            cv2.copyMakeBorder(image, *edges, cv2.BORDER_CONSTANT),
            cv2.copyMakeBorder(label, *edges, cv2.BORDER_CONSTANT, value=(255,)),
        )

    def _checksum(self, image: NDArray[Any], label: NDArray[Any]) -> Checksums:
        """Return the CRCs of the pair as the packer resizes it: OpenCV breaks ties at random."""
        geometry = Geometry(self._shape.stored, self._shape.fit)
        ignored = np.where(label == 255, IGNORE, label.astype(np.uint16))
        planes, stored = geometry.image(image), geometry.label(ignored).astype(np.uint8)
        return zlib.crc32(planes.tobytes()), zlib.crc32(stored.tobytes())

    def _classes(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the class of every pixel."""
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB if self._colours else cv2.IMREAD_UNCHANGED)
        assert pixels is not None
        if not self._colours:
            return np.asarray(cv2.LUT(pixels, self._class_of))
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA)
        return self._class_of.take(pixels.view("<u4")[..., 0] & 0xFFFFFF, mode="clip")


class KernelLoop(Loop):
    """The same work by the kernels, called as directly as possible."""

    def pair(self, number: int) -> Checksums:
        assert area.KERNEL is not None
        assert class_picture.KERNEL is not None
        assert stored_label.KERNEL is not None
        pixels = self._decoded(image_path(self._raw, number, self._shape).read_bytes())
        planes = np.empty((3, *self._shape.stored), np.uint8)
        area.KERNEL.area_mean(pixels, planes)
        numbers = self._unfiltered(label_path(self._raw, number).read_bytes())
        classes = self._class_of[:256]
        if numbers.ndim == 3:
            colours, coded = np.zeros((256, 3), np.uint8), np.empty(numbers.shape[:2], np.uint8)
            class_picture.KERNEL.colours(numbers.reshape(len(numbers), -1), coded, colours.reshape(-1))
            codes = colours.astype(np.uint32) @ np.array([1, 1 << 8, 1 << 16], np.uint32)
            numbers, classes = coded, self._class_of[codes]
        rows, columns = (nearest_source(*sides) for sides in zip(numbers.shape, self._shape.stored, strict=True))
        label, counts = np.empty(self._shape.stored, np.uint8), np.empty(256, np.int64)
        stored_label.KERNEL.sample(numbers, classes, rows, columns, label, counts)
        return 0, 0

    def _unfiltered(self, data: bytes) -> NDArray[Any]:
        """Return the numbers of a PNG, whose checksums are not compared."""
        raster, offset = [], 8
        while offset < len(data):
            (length,) = struct.unpack_from(">I", data, offset)
            kind, offset = data[offset + 4 : offset + 8], offset + 12 + length
            if kind in (b"IHDR", b"IDAT", b"IEND"):
                raster.append((kind, offset - 4 - length, offset - 4))
        numbers = plain_png.decode(data, raster)
        assert numbers is not None
        return numbers

    def _decoded(self, data: bytes) -> NDArray[Any]:
        return super()._decoded(data) if self._shape.suffix == ".jpg" else self._unfiltered(data)


_loops: list[Loop] = []


def _start(kernels: bool, raw: str, colours: bool, checked: bool, shape: Shape) -> None:
    """Set up a new process: one thread, and memory that is kept once it was allocated."""
    cv2.setNumThreads(0)
    keep_memory()
    _loops.append((KernelLoop if kernels else Loop)(Path(raw), colours, checked, shape))


def _pair(number: int) -> tuple[float, Checksums]:
    before = time.process_time()
    checksums = _loops[0].pair(number)
    return time.process_time() - before, checksums
