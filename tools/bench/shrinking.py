"""Shrink photographs: the area mean of OpenCV, of the kernel and of NumPy; JPEG decoded exactly and fast.

    tools/run bench.shrinking [--rounds 15]

Milliseconds of one thread: the least of several rounds in which the ways take turns. `differ` is the share of bytes in
which OpenCV differs from the exact mean, by one. `whole` decodes and shrinks, and `fast` does so like --decode fast.
PSNR compares their pixels, in decibels. The pictures are drawn. SEGPACK_KERNELS=plain measures the kernel without AVX2.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from program import parser
from scenes.camera import image_path, make_linked_streets
from scenes.shapes import Shape
from scenes.street import Pixels
from tables import line

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pixels.area import area_mean, area_mean_in_numpy
from packer.pixels.resize import Geometry
from packer.workers.memory import keep_memory
from readers.contract.tiles import Size

SHAPES: tuple[tuple[Size, Size], ...] = (
    ((720, 960), (512, 512)),
    ((720, 1280), (512, 512)),
    ((3000, 4000), (512, 512)),
    ((1080, 1920), (512, 512)),
    ((768, 1024), (512, 512)),
    ((1024, 2048), (512, 1024)),
)
HEADS = ("from", "to", "OpenCV", "kernel", "NumPy", "differ", "whole", "fast", "by", "PSNR")
WIDTHS = (-10, -9, 7, 7, 7, 9, 7, 7, 3, 6)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    cv2.setNumThreads(0)
    keep_memory()
    print(line(HEADS, WIDTHS))
    for source, size in SHAPES:
        with tempfile.TemporaryDirectory() as temporary:
            make_linked_streets(Path(temporary) / "raw", 1, shape=Shape(source[0], source[1]))
            data = image_path(Path(temporary) / "raw", 0).read_bytes()
        print(line(_row(data, source, size, rounds), WIDTHS), flush=True)


def _row(data: bytes, source: Size, size: Size, rounds: int) -> Sequence[str]:
    """Measure one picture and return its cells."""
    geometry, rules = Geometry(size), ImageRules()
    image: Any = decode_image(data, rules)
    reduction = geometry.reduction(source)
    planes = [np.empty((3, *size), np.uint8) for _ in range(5)]

    def whole(divisor: int, out: Pixels) -> None:
        pixels: Any = decode_image(data, rules, divisor)
        geometry.image(pixels, out=out, source=source)

    times = least(
        rounds,
        lambda: cv2.split(cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA), list(planes[0])),
        lambda: area_mean(image, planes[1]),
        lambda: area_mean_in_numpy(image, planes[2]),
        lambda: whole(1, planes[3]),
        lambda: whole(reduction, planes[4]),
    )
    assert np.array_equal(planes[1], planes[2])
    differ = float((planes[0] != planes[1]).mean())
    milliseconds = [f"{seconds * 1e3:.2f}" for seconds in times]
    quality = f"{cv2.PSNR(planes[3], planes[4]):.1f}" if reduction > 1 else ""
    names = (f"{width}x{height}" for height, width in (source, size))
    return *names, *milliseconds[:3], f"{differ:.4%}", *milliseconds[3:], str(reduction), quality


def least(rounds: int, *ways: Callable[[], object]) -> list[float]:
    """Return the least seconds of each way."""
    times = [float("inf")] * len(ways)
    for _ in range(rounds):
        for number, way in enumerate(ways):
            started = time.perf_counter()
            way()
            times[number] = min(times[number], time.perf_counter() - started)
    return times


if __name__ == "__main__":
    main()
