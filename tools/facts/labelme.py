"""Paint made shapes with LabelMe, and keep its label and instance pictures.

tools/run facts.labelme     in an environment with segpack and tools/facts/requirements.txt

LabelMe imports its window and its models of networks when it is imported, so only its module of shapes is.
"""

from __future__ import annotations

import base64
import io
import sys
from importlib import import_module
from importlib.util import find_spec
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts

LABELS = ["car", "dog", "sky"]
COUNTS = {"rectangle": 2, "circle": 2, "line": 2, "point": 1, "oriented_rectangle": 4}


def load_shapes() -> Any:
    """Return the module of shapes."""
    spec = find_spec("labelme")
    assert spec is not None, "the environment has labelme"
    folder = next(iter(spec.submodule_search_locations or ()))
    for name, path in (("labelme", folder), ("labelme.utils", f"{folder}/utils"), ("labelme._label_file", folder)):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [path]
    sys.modules["labelme._label_file"].__dict__["ShapeDict"] = dict
    return import_module("labelme.utils.shape")


def document(random: Random) -> dict[str, Any]:
    """Return a file of LabelMe with a few shapes."""
    height, width = random.randint(20, 60), random.randint(20, 90)
    shapes = [_shape(random, height, width) for _ in range(12)]
    return {"version": "6.3.1", "imagePath": "a.png", "imageHeight": height, "imageWidth": width, "shapes": shapes}


def _shape(random: Random, height: int, width: int) -> dict[str, Any]:
    kind = random.choice(["polygon", "polygon", "linestrip", "mask", *COUNTS])
    group = random.choice([None, None, 1, 2])
    found = {"label": random.choice(LABELS), "shape_type": kind, "group_id": group}
    if kind == "mask":
        return {**found, **_mask(random, height, width)}
    points = polygon(random, height, width, random.choice([0, 1, 3]))
    if kind in COUNTS:
        points = [
            [random.uniform(-9, width + 9), random.uniform(-9, height + 9)] if random.random() < 0.8 else [3.5, 4.5]
            for _ in range(COUNTS[kind])
        ]
    return {**found, "points": points}


def _mask(random: Random, height: int, width: int) -> dict[str, Any]:
    top, left = random.randrange(height), random.randrange(width)
    bottom, right = random.randrange(top, height), random.randrange(left, width)
    shape = bottom + 1 - top, right + 1 - left
    inside = np.random.default_rng(random.randrange(99)).integers(0, 2, shape, np.uint8) * 255
    file = io.BytesIO()
    Image.fromarray(inside).convert(random.choice(["L", "1"])).save(file, "PNG")
    corners = [[left + 0.25, top + 0.75], [right, bottom]]
    return {"points": corners, "mask": base64.b64encode(file.getvalue()).decode()}


def _decoded(shape: dict[str, Any]) -> dict[str, Any]:
    """Return a shape as LabelMe has it in memory."""
    if shape["shape_type"] != "mask":
        return shape
    return {**shape, "mask": np.asarray(Image.open(io.BytesIO(base64.b64decode(shape["mask"])))).astype(bool)}


def main() -> None:
    shapes, cases = load_shapes(), []
    numbers = {label: number for number, label in enumerate(LABELS, 1)}
    for seed in range(24):
        made = document(Random(seed))
        size = made["imageHeight"], made["imageWidth"]
        label, ids = shapes.shapes_to_label(size, [_decoded(each) for each in made["shapes"]], numbers)
        cases.append({"document": made, "label": packed(label.astype("u1")), "ids": packed(ids.astype("u2"))})
    write_facts("labelme", ["labelme", "pillow"], cases)
