"""Shrink pictures of many bands: our area mean of 16 bits and floats, next to OpenCV's of each band.

    tools/run bench.shrinking_bands [--rounds 9]

Milliseconds of one thread: the least of several rounds in which both take turns. The numbers are random.
"""

from __future__ import annotations

from itertools import product

import cv2
import numpy as np
from program import parser
from tables import line

from bench.shrinking import least
from packer.pixels.area import area_mean
from readers.contract.tiles import Size

SHAPES = (((720, 960), (512, 512)), ((512, 512), (256, 256)))
HEADS = ("numbers", "bands", "from", "to", "ours", "OpenCV")
WIDTHS = (-8, 6, 10, 9, 7, 7)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=9)
    rounds = options.parse_args().rounds
    cv2.setNumThreads(0)
    print(line(HEADS, WIDTHS))
    for dtype, shape, bands in product(("<u2", "<f4"), SHAPES, (1, 3, 12)):
        print(line(row(dtype, *shape, bands, rounds), WIDTHS), flush=True)


def row(dtype: str, source: Size, size: Size, bands: int, rounds: int) -> tuple[object, ...]:
    """Measure one picture and return its cells."""
    pixels = np.random.default_rng(0).integers(0, 9999, (*source, bands)).astype(dtype)
    ours, theirs = np.empty((bands, *size), dtype), np.empty((bands, *size), dtype)

    def by_opencv() -> None:
        for band, plane in enumerate(theirs):
            single = np.ascontiguousarray(pixels[..., band])
            plane[...] = cv2.resize(single, size[::-1], interpolation=cv2.INTER_AREA)

    times = least(rounds, lambda: area_mean(pixels, ours), by_opencv)
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1)
    names = (f"{width}x{height}" for height, width in (source, size))
    return dtype, bands, *names, *(f"{seconds * 1e3:.1f}" for seconds in times)


if __name__ == "__main__":
    main()
