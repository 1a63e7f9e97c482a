"""Paint made polygons with rasterio, which has GDAL, and keep the pixels: centres inside, even and odd crossings.

tools/run facts.even_odd     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

from random import Random
from typing import Any

import rasterio
import rasterio.features
from rasterio.transform import Affine

from facts.made_shapes import Points, polygon
from facts.write_facts import packed, write_facts

SORTS_OF_NUMBERS = (0, 1, 3)
"""Digits of the coordinates."""


def rings_of(random: Random, height: int, width: int) -> list[Points]:
    """Return a polygon, and now and then a hole or a ring across it."""
    digits = random.choice(SORTS_OF_NUMBERS)
    return [polygon(random, height, width, digits) for _ in range(random.choice([1, 1, 2]))]


def main() -> None:
    cases: list[dict[str, Any]] = []
    for seed in range(150):
        random = Random(seed)
        height, width = random.randint(5, 40), random.randint(5, 60)
        rings = rings_of(random, height, width)
        shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]] for ring in rings]}
        transform = Affine.identity()
        pixels = rasterio.features.rasterize([(shape, 1)], (height, width), transform=transform, dtype="uint8")
        cases.append({"size": [height, width], "rings": rings, "inside": packed(pixels)})
    write_facts("even_odd", ["rasterio"], cases, {"GDAL": rasterio.__gdal_version__})
