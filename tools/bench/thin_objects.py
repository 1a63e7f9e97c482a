"""Paint 1,000 thin outlines at 640x480 and take the nearest pixels of a smaller size, or paint them at that size.

    tools/run bench.thin_objects

Prints for some of the tools that formats follow how many outlines, 1 to 2 pixels wide and 3 to 12 long, have a pixel
at the smaller size, and how many times their area they cover there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import line

from packer.annotations.annotation import AnnotatedPicture, Annotation, Shape
from packer.annotations.coco_polygon import CocoPolygon
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.paint import Brush, Canvas
from packer.annotations.pillow_polygon import PillowPolygon
from packer.annotations.yolo import YoloPolygon
from packer.pixels.resize import Geometry
from readers.contract.tiles import Size

SIZE, COUNT = (480, 640), 1000
Points = NDArray[np.float64]
SHAPES: dict[str, Callable[[Points, Size], Shape]] = {
    "pycocotools": lambda points, size: CocoPolygon(points),
    "pixel centres": lambda points, size: EvenOddPolygon((points,)),
    "Pillow": lambda points, size: PillowPolygon(points),
    "OpenCV": lambda points, size: YoloPolygon((points / size[::-1]).astype(np.float32)),
}


def main() -> None:
    parser(__doc__).parse_args()
    random = np.random.default_rng(0)
    outlines = [_outline(random) for _ in range(COUNT)]
    widths = (-14, 12, 14, 14, 14, 14)
    print(line(("", "smaller by", "nearest keeps", "of the area", "painted there", "of the area"), widths))
    for name, shape in SHAPES.items():
        for times in (2, 4, 8):
            print(line((name, times, *_kept(outlines, shape, times)), widths))


def _kept(outlines: Sequence[Points], shape: Callable[[Points, Size], Shape], times: int) -> list[str]:
    """Return how many outlines have a pixel, and their share of the area, by each of the two ways."""
    small = SIZE[0] // times, SIZE[1] // times
    rows, columns, _ = Geometry(small).sampled(SIZE)
    areas = np.array(
        [
            (np.count_nonzero(whole), np.count_nonzero(whole[np.ix_(rows, columns)]), np.count_nonzero(there))
            for points in outlines
            for whole, there in [(_painted(shape(points, SIZE), SIZE), _painted(shape(points / times, small), small))]
        ]
    )
    shares = areas.sum(0) * times**2 / areas[:, 0].sum()
    kept = np.count_nonzero(areas, axis=0)
    return [f"{kept[1]}", f"{shares[1]:.2f}", f"{kept[2]}", f"{shares[2]:.2f}"]


def _painted(shape: Shape, size: Size) -> NDArray[np.bool_]:
    canvas = Canvas(AnnotatedPicture((Annotation("wire", (shape,)),)), size, Brush({"wire": 1}))
    return canvas.top > 0


def _outline(random: np.random.Generator) -> Points:
    angle, length, width = random.uniform(0, np.pi), random.uniform(3, 12), random.uniform(1, 2)
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]]) * width / 2
    centre, along = random.uniform(20, (620, 460)), along * length / 2
    corners = [centre - along - across, centre + along - across, centre + along + across, centre - along + across]
    return np.array(corners)
