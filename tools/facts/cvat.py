"""Paint made shapes as CVAT's export "Segmentation mask" does, with datumaro and its transforms, and keep the labels.

The export turns ellipses and boxes with a rotation by a few lines of the server, which no package has; they are written
here after its source, formats/transformations.py of CVAT 2. Its datumaro rounds coordinates in double precision, the
released one in single precision, so they are rounded here.

tools/run facts.cvat     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

import math
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

import cv2
import numpy as np
from cvat_sdk.masks import decode_mask, encode_mask
from datumaro.components.annotation import Bbox, CompiledMask, Mask, Polygon
from datumaro.components.dataset_base import DatasetItem
from datumaro.components.media import Image
from datumaro.plugins.transforms import BoxesToMasks, MergeInstanceSegments, PolygonsToMasks
from numpy.typing import NDArray

from facts.made_shapes import Points, polygon
from facts.write_facts import packed, write_facts

LABELS = ("background", "car", "sky", "dog")


def _shape(random: Random, size: tuple[int, int]) -> tuple[str, Any]:
    """Return a shape as XML, and as datumaro has it when CVAT exports it."""
    height, width = size
    kind = random.choice(["polygon", "polygon", "box", "turned", "ellipse", "mask"])
    label, z_order = random.randrange(1, 4), random.choice([0, 0, 1, -2])
    group = 10 * label + random.choice([0, 1]) if random.random() < 0.2 else 0
    z_order = 0 if group else z_order  # the export merges a group: one label and one z_order
    about = {"label": LABELS[label], "occluded": 0, "z_order": z_order, **({"group_id": group} if group else {})}
    facts = {"label": label, "z_order": z_order, "group": group}
    if kind == "polygon":
        points = [(round(x, 2), round(y, 2)) for x, y in polygon(random, height, width, random.choice([0, 2]))]
        text = ";".join(f"{x:.2f},{y:.2f}" for x, y in points)
        return _xml("polygon", {**about, "points": text}), _exact(
            Polygon([0] * 6, **facts), [n for p in points for n in p]
        )
    if kind in ("box", "turned"):
        return _box(random, size, about, facts, kind == "turned")
    if kind == "ellipse":
        x, y, across, down, angle = (round(random.uniform(0, most), 2) for most in (width, height, 9, 6, 360))
        canvas = np.zeros(size, np.uint8)
        cv2.ellipse(canvas, (round(x), round(y)), (round(across), round(down)), angle, 0, 360, 255, thickness=-1)
        return _xml("ellipse", {**about, "cx": x, "cy": y, "rx": across, "ry": down, "rotation": angle}), Mask(
            canvas, **facts
        )
    return _mask(random, size, about, facts)


def _box(random: Random, size: tuple[int, int], about: Any, facts: Any, turned: bool) -> tuple[str, Any]:
    left, top = round(random.uniform(0, size[1]), 2), round(random.uniform(0, size[0]), 2)
    right, bottom = round(left + random.uniform(0, 20), 2), round(top + random.uniform(0, 20), 2)
    corners = {"xtl": f"{left:.2f}", "ytl": f"{top:.2f}", "xbr": f"{right:.2f}", "ybr": f"{bottom:.2f}"}
    if not turned:
        return _xml("box", {**about, **corners}), _exact(Bbox(0, 0, 1, 1, **facts), [left, top, right, bottom])
    degrees = round(random.uniform(1, 359), 2)
    angle, x, y = math.radians(degrees), left + (right - left) / 2, top + (bottom - top) / 2
    points = []
    for a, b in [(left, top), (right, top), (right, bottom), (left, bottom)]:
        points.append(x + math.cos(angle) * (a - x) - math.sin(angle) * (b - y))
        points.append(y + math.sin(angle) * (a - x) + math.cos(angle) * (b - y))
    return _xml("box", {**about, **corners, "rotation": f"{degrees:.2f}"}), (
        "turned",
        _exact(Polygon([0] * 6, **facts), points),
    )


def _exact(shape: Any, points: list[float]) -> Any:
    """Give a shape its points, rounded in double precision."""
    shape.points = np.around(points, 2).tolist()
    return shape


def _mask(random: Random, size: tuple[int, int], about: Any, facts: Any) -> tuple[str, Any]:
    drawn = np.random.default_rng(random.randrange(999)).random((size[0] // 2, size[1] // 2)) < random.choice(
        [0.1, 0.9]
    )
    whole = np.zeros(size, bool)
    top, left = random.randrange(size[0] // 2), random.randrange(size[1] // 2)
    whole[top : top + size[0] // 2, left : left + size[1] // 2] = drawn
    *counts, x1, y1, x2, y2 = map(int, encode_mask(whole))
    where = {"left": x1, "top": y1, "width": x2 - x1 + 1, "height": y2 - y1 + 1}
    decoded = decode_mask([*counts, x1, y1, x2, y2], image_width=size[1], image_height=size[0])
    return _xml("mask", {**about, "rle": ", ".join(map(str, counts)), **where}), Mask(decoded, **facts)


def _xml(tag: str, attributes: dict[str, Any]) -> str:
    return f"<{tag} {' '.join(f'{name}={quoteattr(str(value))}' for name, value in attributes.items())}></{tag}>"


def _painted(shapes: list[Any], size: tuple[int, int]) -> NDArray[Any]:
    """Return the label as the export makes it: turned boxes come last, groups are merged, z_order decides."""
    plain = [each for each in shapes if not isinstance(each, tuple)]
    turned = [each[1] for each in shapes if isinstance(each, tuple)]
    item = DatasetItem("a", media=Image.from_numpy(np.zeros((*size, 3), np.uint8)), annotations=[*plain, *turned])
    for transform in (PolygonsToMasks, BoxesToMasks, MergeInstanceSegments):
        item = transform([item]).transform_item(item)
    label: NDArray[Any] = CompiledMask.from_instance_masks(item.annotations).class_mask
    return label


def label_of(points: Points, size: tuple[int, int]) -> NDArray[Any]:
    """Return the label of one polygon."""
    return _painted([_exact(Polygon([0] * 6, label=1), [n for point in points for n in point])], size)


def main() -> None:
    cases = []
    for seed in range(30):
        random = Random(seed)
        size = random.randint(20, 50), random.randint(20, 70)
        made = [_shape(random, size) for _ in range(6)]
        image = f'<image id="0" name="a/b.jpg" width="{size[1]}" height="{size[0]}">'
        xml = image + "".join(text for text, _ in made) + "</image>"
        cases.append(
            {"xml": xml, "size": size, "label": packed(_painted([each for _, each in made], size).astype("u1"))}
        )
    write_facts("cvat", ["datumaro", "cvat-sdk", "pycocotools", "opencv-python"], cases)
