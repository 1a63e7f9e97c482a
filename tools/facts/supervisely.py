"""Paint made figures with the SDK of Supervisely, one by one, and keep the masks.

Polygons are read as part of a file, because only then the SDK cuts them at the border of the picture. What it does to
polygons that cross themselves is left out: these are drawn whole, like all other figures.

tools/run facts.supervisely     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from supervisely.annotation.annotation import Annotation
from supervisely.annotation.obj_class import ObjClass
from supervisely.annotation.obj_class_collection import ObjClassCollection
from supervisely.geometry.any_geometry import AnyGeometry
from supervisely.geometry.bitmap import Bitmap
from supervisely.geometry.multipolygon import Multipolygon
from supervisely.geometry.point_location import PointLocation
from supervisely.geometry.polygon import Polygon
from supervisely.geometry.polyline import Polyline
from supervisely.geometry.rectangle import Rectangle
from supervisely.project.project_meta import ProjectMeta

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts

Outline = import_module("shapely.geometry").Polygon
META = ProjectMeta(ObjClassCollection([ObjClass("car", AnyGeometry)]))
KINDS = {"polygon": Polygon, "multipolygon": Multipolygon, "rectangle": Rectangle, "line": Polyline, "bitmap": Bitmap}


def figure(random: Random, height: int, width: int) -> dict[str, Any]:
    """Return a figure as a file of annotations has it."""
    kind = random.choice(["polygon", "polygon", "multipolygon", "rectangle", "line", "bitmap"])
    digits = 0 if kind == "rectangle" else random.choice([0, 1, 3])
    ring = polygon(random, height, width, digits)
    if kind == "rectangle":
        ring = [[max(x, 0), max(y, 0)] for x, y in ring]
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


def drawn(made: dict[str, Any], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return the pixels of a figure, as the SDK draws what it reads."""
    document = {**_document(made, size), "description": "", "tags": []}
    pixels = np.zeros(size, np.uint8)
    found: Any = KINDS[made["geometryType"]].from_json(made)
    parts = {"polygon": [found], "multipolygon": getattr(found, "parts", [])}.get(made["geometryType"], [])
    if parts and all(Outline(part.exterior_np, part.interior_np).is_valid for part in parts):
        for label in Annotation.from_json(document, META).labels:
            label.geometry.draw(pixels, 1)
    else:
        found.draw(pixels, 1)
    return pixels


def _document(made: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Return a file with one figure."""
    return {
        "size": {"height": size[0], "width": size[1]},
        "objects": [{**made, "tags": [], "description": ""}],
    }


def main() -> None:
    cases = []
    for seed in range(240):
        random = Random(seed)
        height, width = random.randint(8, 60), random.randint(8, 90)
        made = figure(random, height, width)
        document, pixels = _document(made, (height, width)), drawn(made, (height, width))
        cases.append({"document": document, "mask": packed(np.packbits(pixels > 0))})
    write_facts("supervisely", ["supervisely", "opencv-python"], cases)
