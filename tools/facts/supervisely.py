"""Paint made figures with the SDK of Supervisely, one by one, and keep the masks.

tools/run facts.supervisely     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from supervisely.geometry.bitmap import Bitmap
from supervisely.geometry.multipolygon import Multipolygon
from supervisely.geometry.point_location import PointLocation
from supervisely.geometry.polygon import Polygon
from supervisely.geometry.polyline import Polyline
from supervisely.geometry.rectangle import Rectangle

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts

KINDS = {"polygon": Polygon, "multipolygon": Multipolygon, "rectangle": Rectangle, "line": Polyline, "bitmap": Bitmap}


def figure(random: Random, height: int, width: int) -> dict[str, Any]:
    """Return a figure as a file of annotations has it."""
    kind = random.choice(["polygon", "polygon", "multipolygon", "rectangle", "line", "bitmap"])
    digits = 0 if kind == "rectangle" else random.choice([0, 1, 3])
    ring = [[max(x, 0), max(y, 0)] for x, y in polygon(random, height, width, digits)]
    holes = [polygon(random, height, width, digits) for _ in range(random.choice([0, 1, 2]))]
    found: dict[str, Any] = {"classTitle": "car", "geometryType": kind}
    if kind == "multipolygon":
        return {**found, "parts": [{"exterior": ring, "interior": holes}, {"exterior": holes[0] if holes else ring}]}
    if kind == "bitmap":
        return {**found, "bitmap": _bitmap(random, height, width)}
    exterior = ring[:2] if kind == "rectangle" else ring
    return {**found, "points": {"exterior": exterior, "interior": holes if kind == "polygon" else []}}


def _bitmap(random: Random, height: int, width: int) -> dict[str, Any]:
    top, left = random.randrange(height // 2), random.randrange(width // 2)
    mask = np.random.default_rng(random.randrange(999)).random((height // 2, width // 2)) < random.choice([0.2, 0.9])
    mask[0, :], mask[:, 0], mask[-1, :] = True, True, True
    made = Bitmap(mask, PointLocation(top, left))
    return {"data": Bitmap.data_2_base64(made.data), "origin": [made.origin.col, made.origin.row]}


def main() -> None:
    cases = []
    for seed in range(160):
        random = Random(seed)
        height, width = random.randint(8, 60), random.randint(8, 90)
        made = figure(random, height, width)
        pixels = np.zeros((height, width), np.uint8)
        KINDS[made["geometryType"]].from_json(made).draw(pixels, 1)
        document = {"size": {"height": height, "width": width}, "objects": [made]}
        cases.append({"document": document, "mask": packed(np.packbits(pixels > 0))})
    write_facts("supervisely", ["supervisely", "opencv-python"], cases)
