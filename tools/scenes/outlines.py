"""Raw folders of tiny pictures with triangles: a file of LabelMe for each picture, or one of COCO for all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import numpy as np

from scenes.pictures import write_picture

LABELME, COCO = "labelme", "coco"
FILE, IMAGES, LIST = "instances.json", "images", "labels.txt"
OPTIONS = {LABELME: (), COCO: ("--annotations", FILE, "--image", f"{IMAGES}/{{key}}.png")}
HEIGHT, WIDTH = 24, 36
NAMES = ("sky", "road", "car")
Triangle: TypeAlias = "tuple[int, list[int]]"
"""The number of a category, and x and y of three points: numbers of two digits, so all files have one size."""


@dataclass
class Outlines:
    """The categories, and the triangles of each picture."""

    names: list[str] = field(default_factory=lambda: list(NAMES))
    pictures: dict[str, list[Triangle]] = field(default_factory=dict)


def triangle(seed: int | Sequence[int]) -> Triangle:
    """Return a random triangle."""
    dice = np.random.default_rng(seed)
    xs, ys = dice.integers(10, WIDTH, 3).tolist(), dice.integers(10, HEIGHT, 3).tolist()
    return int(dice.integers(len(NAMES))), [number for point in zip(xs, ys, strict=True) for number in point]


def write_noisy(raw: Path, key: str, seed: int | Sequence[int]) -> None:
    """Write a picture of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    write_picture(raw / IMAGES / f"{key}.png", pixels)


def read_outlines(raw: Path, kind: str) -> Outlines:
    """Return what the files of annotations have. A file that is none of LabelMe has no triangles."""
    return _read_coco(raw) if kind == COCO else _read_labelme(raw)


def write_outlines(raw: Path, kind: str, outlines: Outlines) -> None:
    """Write all files of annotations that change, and delete those of pictures that have none."""
    texts = _coco(outlines) if kind == COCO else _labelme(outlines)
    for path in [*raw.glob("*.json"), *raw.glob(f"{IMAGES}/*.json")]:
        if str(path.relative_to(raw)) not in texts:
            path.unlink()
    for name, text in texts.items():
        path = raw / name
        if not path.is_file() or path.read_text() != text:
            if path.exists() and not path.is_file():  # a pipe
                path.unlink()
            path.write_text(text)


def _labelme(outlines: Outlines) -> dict[str, str]:
    texts = {LIST: "".join(f"{name}\n" for name in outlines.names)}
    for key, triangles in outlines.pictures.items():
        shapes = [
            {"label": outlines.names[category], "shape_type": "polygon", "points": [ring[:2], ring[2:4], ring[4:]]}
            for category, ring in triangles
        ]
        facts = {"imagePath": f"{key}.png", "imageHeight": HEIGHT, "imageWidth": WIDTH, "shapes": shapes}
        texts[f"{IMAGES}/{key}.json"] = json.dumps(facts)
    return texts


def _read_labelme(raw: Path) -> Outlines:
    found = Outlines((raw / LIST).read_text().split())
    for path in sorted((raw / IMAGES).glob("*.json")):
        shapes = json.loads(path.read_text())["shapes"] if path.is_file() else []
        triangles = ((found.names.index(each["label"]), list(chain(*each["points"]))) for each in shapes)
        found.pictures[path.stem] = list(triangles)
    return found


def _coco(outlines: Outlines) -> dict[str, str]:
    images, annotations = [], []
    for key, triangles in outlines.pictures.items():
        number = crc32(key.encode())  # the same whatever pictures come and go
        images.append({"id": number, "file_name": f"{key}.png", "height": HEIGHT, "width": WIDTH})
        for n, (category, ring) in enumerate(triangles):
            ids = {"id": number * 100 + n, "image_id": number, "category_id": category}
            annotations.append({**ids, "segmentation": [ring]})
    names = [{"id": number, "name": name} for number, name in enumerate(outlines.names)]
    return {FILE: json.dumps({"images": images, "annotations": annotations, "categories": names})}


def _read_coco(raw: Path) -> Outlines:
    document = json.loads((raw / FILE).read_text())
    keys = {each["id"]: each["file_name"].removesuffix(".png") for each in document["images"]}
    found = Outlines([each["name"] for each in document["categories"]], {key: [] for key in keys.values()})
    for each in document["annotations"]:
        found.pictures[keys[each["image_id"]]].append((each["category_id"], each["segmentation"][0]))
    return found
