"""Paint thin outlines at 640x480 and bring them to a smaller size by both choices of `--rasterise`.

    tools/run bench.thin_objects

Prints for some of the tools that formats follow how many objects have a pixel at the smaller size, how many of them
are in one piece, and how many times their area they cover; then the same for coordinates that are moved to the smaller
size and painted there, which `packer` does not do. At last it counts the objects that crowded pictures lose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import line

from packer.annotations.annotation import AnnotatedPicture, Annotation, Shape
from packer.annotations.coco_polygon import CocoPolygon
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.paint import Brush, Canvas
from packer.annotations.pillow_polygon import PillowPolygon
from packer.annotations.thin_objects import Cells
from packer.annotations.yolo import YoloPolygon
from packer.pixels.nearest import StoredLines, stored_lines
from packer.pixels.resize import Geometry
from readers.contract.tiles import Size

SIZE, TIMES, TOGETHER = (480, 640), (2, 4, 8), 100
Points = NDArray[np.float64]
Painted = NDArray[np.bool_]
OBJECTS = {
    "1,000 outlines, 3 to 12 long, 1 to 2 wide": (1000, (3, 12), (1, 2)),
    "200 wires, 50 to 200 long, 1 to 2 wide": (200, (50, 200), (1, 2)),
    "200 rectangles, 4 to 20 long and wide": (200, (4, 20), (4, 20)),
}
SHAPES: dict[str, Callable[[Points, Size], Shape]] = {
    "pycocotools": lambda points, size: CocoPolygon(points),
    "pixel centres": lambda points, size: EvenOddPolygon((points,)),
    "Pillow": lambda points, size: PillowPolygon(points),
    "OpenCV": lambda points, size: YoloPolygon((points / size[::-1]).astype(np.float32)),
}
HEADS = ("", "smaller by", *("kept", "whole", "area") * 2, "kept", "whole", "area", "together", "lost", "lost")
WIDTHS = (-14, 11, *(7,) * 9, 9, 7, 7)


def main() -> None:
    parser(__doc__).parse_args()
    for title, (count, lengths, widths) in OBJECTS.items():
        random = np.random.default_rng(0)
        outlines = [_outline(random, lengths, widths) for _ in range(count)]
        print(f"\n{title}: picture, stored, moved")
        print(line(HEADS, WIDTHS))
        for name, shape in SHAPES.items():
            for times in TIMES:
                found = (*_alone(outlines, shape, times), *_together(outlines, shape, times))
                print(line((name, times, *found), WIDTHS), flush=True)


def _alone(outlines: Sequence[Points], shape: Callable[[Points, Size], Shape], times: int) -> Iterator[str]:
    """Yield for both choices and for moved coordinates the objects kept, those in one piece, and their area."""
    small = SIZE[0] // times, SIZE[1] // times
    lines = stored_lines(Geometry(small).placement(SIZE))
    ways: list[list[Painted]] = [[], [], []]
    pixels = 0
    for points in outlines:
        canvas = _canvas([shape(points, SIZE)], SIZE)
        pixels += int(np.count_nonzero(canvas.top))
        ways[0].append(_sampled(canvas, lines))
        canvas.keep_thin(Cells(lines.of_rows, lines.of_columns))
        ways[1].append(_sampled(canvas, lines))
        ways[2].append(_canvas([shape(points / times, small)], small).top > 0)
    for way in ways:
        pieces = [cv2.connectedComponents(each.view(np.uint8))[0] - 1 for each in way]
        area = sum(map(np.count_nonzero, way)) * times**2 / pixels
        yield from (str(np.count_nonzero(pieces)), str(pieces.count(1)), f"{area:.2f}")


def _together(outlines: Sequence[Points], shape: Callable[[Points, Size], Shape], times: int) -> tuple[str, ...]:
    """Return how many objects pictures of many show, and how many of them each choice loses."""
    lines = stored_lines(Geometry((SIZE[0] // times, SIZE[1] // times)).placement(SIZE))
    shown, lost = 0, [0, 0]
    for start in range(0, len(outlines), TOGETHER):
        canvas = _canvas([shape(points, SIZE) for points in outlines[start : start + TOGETHER]], SIZE)
        shown += len(np.unique(canvas.top)) - 1
        lost[0] += canvas.lost_at(canvas.top, lines.rows, lines.columns)
        canvas.keep_thin(Cells(lines.of_rows, lines.of_columns))
        lost[1] += canvas.lost_at(canvas.top, lines.rows, lines.columns)
    return tuple(map(str, (shown, *lost)))


def _canvas(shapes: Sequence[Shape], size: Size) -> Canvas:
    annotations = tuple(Annotation("wire", (shape,)) for shape in shapes)
    return Canvas(AnnotatedPicture(annotations), size, Brush({"wire": 1}))


def _sampled(canvas: Canvas, lines: StoredLines) -> Painted:
    return np.asarray(canvas.top[np.ix_(lines.rows, lines.columns)] > 0)


def _outline(random: np.random.Generator, lengths: tuple[int, int], widths: tuple[int, int]) -> Points:
    """Return a rectangle, turned by any angle, whose middle leaves room for its half on all sides."""
    angle, length, width = random.uniform(0, np.pi), random.uniform(*lengths), random.uniform(*widths)
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]]) * width / 2
    centre, along = random.uniform(110, (530, 370)), along * length / 2
    corners = [centre - along - across, centre + along - across, centre + along + across, centre - along + across]
    return np.array(corners)
