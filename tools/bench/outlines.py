"""Paint 20 outlines of 50 points at 640x480, and decode a JPEG of that size, in turns. Then whole labels by format.

    tools/run bench.outlines [--rounds 30]

Prints the median milliseconds of each: the outlines with the kernel and by NumPy, the whole label with its canvas, the
outlines by pycocotools, the JPEG, and the search for objects that 512x512 pixels lose, of which there is one. Then, for
640x480 and 1024x1024, those of a label from the bytes of a file in each format: reading it, painting its shapes on
a canvas, the pixels of the label, its notes, all of these; and as shares of the JPEG.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import cv2
import numpy as np
from program import REPO, parser
from tables import line

from bench.outline_files import CATEGORY, readers_of
from packer.annotations import coco_polygon
from packer.annotations.annotation import AnnotatedPicture, Annotation
from packer.annotations.paint import Brush, Canvas
from packer.decoding import jpeg
from packer.decoding.decode import header_of
from packer.pixels.resize import Geometry
from readers.contract.tiles import Size

SIZE, STORED = (480, 640), (512, 512)
LARGE = (1024, 1024)
OBJECTS, POINTS, TIMES = 20, 50, 5
STEPS = ("read", "paint", "label", "notes", "all", "painting/JPEG", "all/JPEG")
FORMAT_WIDTHS = (-14, 7, 7, 7, 7, 7, 14, 9)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=30)
    rounds = options.parse_args().rounds
    rings = [_ring(np.random.default_rng(number)) for number in range(OBJECTS)]
    shapes = [coco_polygon.coco_polygon(ring) for ring in rings]
    picture = AnnotatedPicture(tuple(Annotation("car", (shape,)) for shape in shapes), SIZE)
    kernel = coco_polygon.KERNEL
    drawing = cv2.imread(str(REPO / "docs" / "road.png"))
    assert drawing is not None
    data = _jpeg(drawing, SIZE)
    header = header_of(data)

    rows, columns, _ = Geometry(STORED).sampled(SIZE)
    column = next(number for number in range(SIZE[1]) if number not in columns)
    thin = Annotation("car", (coco_polygon.coco_polygon([column, 0, column + 1, 0, column + 1, 400, column, 400]),))
    canvas = Canvas(AnnotatedPicture((*picture.annotations, thin)), SIZE, Brush({"car": 1}))
    canvas.notes()
    assert canvas.lost_at(canvas.top, rows, columns)

    def by_numpy() -> None:
        coco_polygon.KERNEL = None
        _paint(shapes)
        coco_polygon.KERNEL = kernel

    calls: dict[str, Callable[[], object]] = {
        "outlines": lambda: _paint(shapes),
        "by NumPy": by_numpy,
        "label": lambda: Canvas(picture, SIZE, Brush({"car": 1})).label(),
        "pycocotools": lambda: _reference(rings),
        "JPEG": lambda: jpeg.decode(data, header),
        "lost": lambda: canvas.lost_at(canvas.top, rows, columns),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.perf_counter()
            for _ in range(TIMES):
                call()
            seconds[name].append((time.perf_counter() - started) / TIMES)
    widths = (-10, *(12 for _ in calls))
    print(line(("", *calls), widths))
    print(line(("ms", *(f"{1000 * median(found):.2f}" for found in seconds.values())), widths))
    for size in (SIZE, LARGE):
        _print_formats(size, _jpeg(drawing, size), rounds)


def _print_formats(size: Size, data: bytes, rounds: int) -> None:
    """Print how long labels of each format take. The JPEG and all formats take turns."""
    scale = size[0] / SIZE[0]
    rings = [_ring(np.random.default_rng(number)) for number in range(OBJECTS)]
    readers = readers_of([(scale * np.array(ring).reshape(-1, 2)).tolist() for ring in rings], size)
    brush, header = Brush({CATEGORY: 1, "car": 2, "class_0": 3}), header_of(data)
    steps: dict[str, list[list[float]]] = {name: [] for name in readers}
    decoded = []
    for _ in range(rounds):
        for name, reader in readers.items():
            steps[name].append(_seconds(reader, size, brush))
        started = time.perf_counter()
        jpeg.decode(data, header)
        decoded.append(time.perf_counter() - started)
    print(f"\n{size[1]}x{size[0]}: JPEG {1000 * median(decoded):.2f} ms")
    print(line(("", *STEPS), FORMAT_WIDTHS))
    for name, found in steps.items():
        medians = [median(step) for step in zip(*found, strict=True)]
        painting = sum(medians[1:4]) / median(decoded)
        shares = (f"{painting:.2f}", f"{medians[-1] / median(decoded):.2f}")
        print(line((name, *(f"{1000 * each:.2f}" for each in medians), *shares), FORMAT_WIDTHS))


def _seconds(reader: Callable[[], AnnotatedPicture], size: Size, brush: Brush) -> list[float]:
    """Return the time of each step of a label, and of all."""
    times = [time.perf_counter()]
    picture = reader()
    times.append(time.perf_counter())
    canvas = Canvas(picture, size, brush)
    times.append(time.perf_counter())
    assert canvas.label().any()
    times.append(time.perf_counter())
    assert canvas.overlap + len(canvas.notes())
    times.append(time.perf_counter())
    return [*(after - before for before, after in pairwise(times)), times[-1] - times[0]]


def _jpeg(drawing: Any, size: Size) -> bytes:
    shrunk = cv2.resize(drawing, size[::-1], interpolation=cv2.INTER_AREA)
    return bytes(cv2.imencode(".jpg", shrunk)[1].tobytes())


def _ring(rng: np.random.Generator) -> list[float]:
    angles = np.sort(rng.uniform(0, 2 * np.pi, POINTS))
    radius = rng.uniform(40, 100) * rng.uniform(0.6, 1, POINTS)
    points = np.stack([np.cos(angles), np.sin(angles)], 1) * radius[:, None] + rng.uniform(100, 380, 2)
    found: list[float] = points.reshape(-1).tolist()
    return found


def _paint(shapes: list[coco_polygon.CocoPolygon]) -> None:
    for shape in shapes:
        shape.paint(SIZE)


def _reference(rings: list[list[float]]) -> None:
    from pycocotools import mask as coco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for ring in rings:
            coco.decode(coco.frPyObjects([ring], *SIZE))
