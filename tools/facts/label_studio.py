"""Paint made regions with the converter of Label Studio: its COCO file with pycocotools, and its brushes.

tools/run facts.label_studio     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from label_studio_sdk.converter import Converter
from label_studio_sdk.converter.brush import decode_rle, encode_rle, mask2rle
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco

from facts.made_shapes import Points, polygon
from facts.write_facts import packed, write_facts

CONFIG = """<View><Image name="image" value="$image"/><PolygonLabels name="label" toName="image">
<Label value="car"/><Label value="sky"/></PolygonLabels></View>"""


def _task(kind: str, value: dict[str, Any], height: int, width: int) -> dict[str, Any]:
    labels = {f"{kind}labels": ["car"]}
    region = {
        "id": "a",
        "from_name": "label",
        "to_name": "image",
        "type": f"{kind}labels",
        "value": {**value, **labels},
    }
    result = {**region, "original_width": width, "original_height": height}
    return {"id": 1, "data": {"image": "a.png"}, "annotations": [{"id": 1, "result": [result]}]}


def _of_polygon(random: Random, height: int, width: int) -> tuple[dict[str, Any], Any]:
    """Return a task with a polygon, and its mask by way of the converter's COCO file."""
    return exported(polygon(random, height, width, random.choice([0, 1, 3])), height, width)


def exported(ring: Points, height: int, width: int) -> tuple[dict[str, Any], Any]:
    """Return a task with a polygon of these pixels, and its mask."""
    points = [[100 * x / width, 100 * y / height] for x, y in ring]
    task = _task("polygon", {"points": points, "closed": True}, height, width)
    with TemporaryDirectory() as folder:
        Image.new("L", (width, height)).save(Path(folder) / "a.png")
        here = {**task, "data": {"image": str(Path(folder) / "a.png")}}
        (Path(folder) / "in.json").write_text(json.dumps([here]))
        Converter(CONFIG, folder).convert_to_coco(str(Path(folder) / "in.json"), folder, is_dir=False)
        rings = json.loads((Path(folder) / "result.json").read_text())["annotations"][0]["segmentation"]
    return task, coco.decode(coco.merge(coco.frPyObjects(rings, height, width)))


def _of_brush(random: Random, height: int, width: int) -> tuple[dict[str, Any], Any]:
    """Return a task with a brush, in one colour or with a border that is half transparent."""
    mask = _blob(random, height, width)
    if random.random() < 0.5:
        code = mask2rle(mask)
    else:
        colours = np.stack([mask, mask // 2, mask // 3, mask], axis=2)
        code = encode_rle(colours.ravel())
    task = _task("brush", {"format": "rle", "rle": code}, height, width)
    return task, decode_rle(code).reshape(height, width, 4)[:, :, 3] > 0


def _blob(random: Random, height: int, width: int) -> NDArray[np.uint8]:
    ring = [polygon(random, height, width, 1)]
    inside = coco.decode(coco.merge(coco.frPyObjects([[n for point in ring[0] for n in point]], height, width)))
    soft = np.random.default_rng(random.randrange(99)).integers(1, 256, (height, width))
    return np.where(inside > 0, soft if random.random() < 0.3 else 255, 0).astype(np.uint8)


def main() -> None:
    cases = []
    for seed in range(170):
        random = Random(seed)
        height, width = random.randint(8, 50), random.randint(8, 60)
        task, mask = (_of_polygon if seed % 3 else _of_brush)(random, height, width)
        cases.append({"task": task, "size": [height, width], "mask": packed(np.packbits(mask > 0))})
    write_facts("label_studio", ["label-studio-sdk", "pycocotools"], cases)
