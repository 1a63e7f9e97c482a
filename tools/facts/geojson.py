"""Paint made features over made GeoTIFFs with rasterio, and keep the pixels.

tools/run facts.geojson     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random
from typing import Any

import numpy as np
import rasterio
import rasterio.features
from rasterio.io import MemoryFile
from rasterio.transform import Affine

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts

GROUNDS: tuple[tuple[str, Any, dict[str, str]], ...] = (
    ("EPSG:32633", Affine(0.5, 0, 412_345.25, 0, -0.5, 5_812_345.75), {}),
    ("EPSG:4326", Affine(0.00021, 0, 13.4, 0, -0.00013, 52.5), {}),
    ("EPSG:3857", Affine(2.5, 0.7, 1_000_000, 0.6, -2.4, 6_000_000), {}),
    ("EPSG:32633", Affine(10, 0, 300_000, 0, -10, 5_000_000), {"AREA_OR_POINT": "Point"}),
)
"""A system, a map from pixels to the ground, and tags."""


def feature(random: Random, height: int, width: int, transform: Affine) -> dict[str, Any]:
    """Return a feature whose shape has a hole or a second polygon now and then."""

    def ring() -> list[list[float]]:
        points = [transform @ (x, y) for x, y in polygon(random, height, width, 3)]
        return [[x, y] for x, y in (*points, points[0])]

    geometry: dict[str, Any]
    sort = random.choice(["Polygon", "Polygon", "hole", "MultiPolygon"])
    if sort == "MultiPolygon":
        geometry = {"type": sort, "coordinates": [[ring()], [ring()]]}
    else:
        geometry = {"type": "Polygon", "coordinates": [ring() for _ in range(1 + (sort == "hole"))]}
    return {"type": "Feature", "properties": {"Class": "tree"}, "geometry": geometry}


def main() -> None:
    cases = []
    for seed in range(12):
        random = Random(seed)
        system, transform, tags = GROUNDS[seed % len(GROUNDS)]
        height, width = random.randint(10, 40), random.randint(10, 60)
        with MemoryFile() as memory:
            form = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": "uint8"}
            with memory.open(**form, crs=system, transform=transform, compress="deflate") as written:
                written.update_tags(**tags)
                written.write(np.zeros((1, height, width), np.uint8))
            data = bytes(memory.getbuffer())
            with memory.open() as opened:
                features = [feature(random, height, width, opened.transform) for _ in range(10)]
                masks = [
                    rasterio.features.rasterize([(each["geometry"], 1)], (height, width), transform=opened.transform)
                    for each in features
                ]
        name = f"urn:ogc:def:crs:{system.replace(':', '::')}"
        crs = {"type": "name", "properties": {"name": name}}
        document = {"type": "FeatureCollection", "crs": crs, "features": features}
        text, pixels = json.dumps(document), packed(np.stack(masks).astype(np.uint8))
        cases.append({"size": [height, width], "tif": b64encode(data).decode(), "geojson": text, "inside": pixels})
    write_facts("geojson", ["rasterio"], cases, {"GDAL": rasterio.__gdal_version__})
