"""Paint shapes of COCO here and by pycocotools, and compare every pixel.

    tools/run drills.coco_shapes [--count 10000] [--first 0]

Stars, rings with holes, thin and sub-pixel outlines, some on a grid of halves or tenths, outlines outside the picture,
of huge coordinates, with one or two points; each as polygons, and as run lengths in a list and in a text.
Exits 1 if a pixel differs.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import line

from packer.annotations.annotation import Annotation
from packer.annotations.coco_polygon import coco_polygon
from packer.annotations.paint import mask_of, window
from packer.annotations.run_lengths import run_lengths
from readers.contract.tiles import Size

Ring = list[float]
KINDS = ("star", "hole", "thin", "sub-pixel", "halves", "outside", "huge", "degenerate", "many rings")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=10_000, help="annotations; each is painted in three forms")
    options.add_argument("--first", type=int, default=0, help="the number of the first one; it decides all of them")
    chosen = options.parse_args()
    shapes, pixels, wrong = Counter[str](), Counter[str](), Counter[str]()
    for number in range(chosen.first, chosen.first + chosen.count):
        kind, rings, size = made(number)
        expected = reference(rings, size)
        shapes[kind] += 1
        pixels[kind] += int(expected.sum())
        if any(not np.array_equal(found, expected) for found in painted(rings, size, expected)):
            wrong[kind] += 1
            print(f"number {number}: {rings} in {size}", file=sys.stderr)
    widths = (-12, 12, 14, 8)
    print(line(("shape", "annotations", "pixels inside", "WRONG"), widths))
    for kind in KINDS:
        print(line((kind, shapes[kind], pixels[kind], wrong[kind]), widths))
    sys.exit(1 if wrong.total() else 0)


def made(number: int) -> tuple[str, list[Ring], Size]:
    """Return the kind, the rings and the picture of an annotation; the number decides all of it."""
    rng = np.random.default_rng(number)
    kind = KINDS[number % len(KINDS)]
    height, width = (int(side) for side in rng.integers(1, 120, 2))
    scale = np.array([width, height])
    if kind == "star":
        rings = [star(rng, scale)]
    elif kind == "hole":
        outer = star(rng, scale)
        rings = [outer, *(((outer - outer.mean(0)) * share + outer.mean(0))[::-1] for share in (0.7, 0.3))]
    elif kind == "thin":
        line_of = rng.uniform(-0.2, 1.2, (2, 2)) * scale
        rings = [np.concatenate([line_of, line_of[::-1] + rng.uniform(-1, 1, 2)])]
    elif kind == "sub-pixel":
        rings = [rng.uniform(0, 1.5, (int(rng.integers(3, 8)), 2)) + rng.uniform(0, 1, 2) * scale]
    elif kind == "halves":
        steps = int(rng.choice([1, 2, 5, 10]))
        rings = [np.round(rng.uniform(-0.3, 1.3, (int(rng.integers(3, 15)), 2)) * scale * steps) / steps]
    elif kind == "outside":
        rings = [rng.uniform(-2, 3, (int(rng.integers(3, 12)), 2)) * scale]
    elif kind == "huge":
        rings = [rng.uniform(-1, 1, (int(rng.integers(3, 6)), 2)) * 10 ** rng.uniform(2, 5.5)]
    elif kind == "degenerate":
        rings = [np.zeros((3, 2)), np.repeat(rng.uniform(0, 1, (int(rng.integers(1, 3)), 2)) * scale, 2, axis=0)]
    else:
        rings = [star(rng, scale) + rng.uniform(-5, 5, 2) for _ in range(int(rng.integers(2, 5)))]
    return kind, [ring.reshape(-1).tolist() for ring in rings], (height, width)


def star(rng: np.random.Generator, scale: NDArray[Any]) -> NDArray[np.float64]:
    """Return the outline of a star that lies in the picture, or a little beyond."""
    count = int(rng.integers(3, 40))
    angles = np.sort(rng.uniform(0, 2 * np.pi, count))
    radius = rng.uniform(0.1, 0.6) * scale.min() * rng.uniform(0.3, 1, count)
    centre = rng.uniform(0.2, 0.8, 2) * scale
    return np.asarray(np.stack([np.cos(angles), np.sin(angles)], 1) * radius[:, None] + centre)


def reference(rings: list[Ring], size: Size) -> NDArray[np.uint8]:
    """Return the picture that pycocotools makes of these rings."""
    from pycocotools import mask as coco

    with warnings.catch_warnings():  # it is older than NumPy 2
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.asarray(coco.decode(coco.merge(coco.frPyObjects(rings, *size))))


def painted(rings: list[Ring], size: Size, expected: NDArray[np.uint8]) -> list[NDArray[np.bool_]]:
    """Return what is painted of the rings, and of both forms of the run lengths that pycocotools makes of a mask."""
    from pycocotools import mask as coco

    text = coco.encode(np.asfortranarray(expected))["counts"].decode()
    changes = np.flatnonzero(np.diff(expected.reshape(-1, order="F"), prepend=0))
    counts = np.diff(changes, prepend=0, append=expected.size).tolist()
    forms = (
        [coco_polygon(ring) for ring in rings],
        [run_lengths(text, list(size))],
        [run_lengths(counts, list(size))],
    )
    found = []
    for shapes in forms:
        mask = mask_of(Annotation("", tuple(shapes)), size)
        picture = np.zeros(size, np.bool_)
        window(picture, mask)[...] = mask.inside
        found.append(picture)
    return found
