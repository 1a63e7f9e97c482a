"""The page about tools that disagree: its tables are those of the kept masks, and our shapes paint as it says."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from facts import rasterising_page
from facts.made_shapes import Points
from facts.rasterising import SHAPES, SIDE, text_of

from packer.annotations import cvat, label_studio, supervisely
from packer.annotations.annotation import Shape
from packer.annotations.coco_polygon import CocoPolygon
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.paint import window
from packer.annotations.pillow_polygon import PillowPolygon
from packer.annotations.voc import VocPolygon
from packer.annotations.yolo import YoloPolygon


def _of_cvat(points: Points) -> Shape:
    text = ";".join(f"{x},{y}" for x, y in points)
    image = f'<image name="a" width="{SIDE}" height="{SIDE}"><polygon label="car" points="{text}"/></image>'
    return cvat.read(image.encode()).annotations[0].shapes[0]


def _of_label_studio(points: Points) -> Shape:
    value = {"points": [[100 * x / SIDE, 100 * y / SIDE] for x, y in points], "polygonlabels": ["car"]}
    region = {"type": "polygonlabels", "value": value, "original_width": SIDE, "original_height": SIDE}
    task = {"data": {"image": "a.png"}, "annotations": [{"result": [region]}]}
    return label_studio.read(json.dumps(task).encode()).annotations[0].shapes[0]


def _of_supervisely(points: Points) -> Shape:
    made = {"classTitle": "car", "geometryType": "polygon", "points": {"exterior": points, "interior": []}}
    document = {"size": {"height": SIDE, "width": SIDE}, "objects": [made]}
    return supervisely.read(json.dumps(document).encode()).annotations[0].shapes[0]


OURS: dict[str, Callable[[Points], Shape]] = {
    "rasterio": lambda points: EvenOddPolygon((np.array(points, np.float64),)),
    "pycocotools": lambda points: CocoPolygon(np.array(points, np.float64)),
    "CVAT's export": _of_cvat,
    "Label Studio's export": _of_label_studio,
    "supervisely": _of_supervisely,
    "cv2.fillPoly (rounded)": lambda points: VocPolygon(np.round(np.array(points)).astype(np.int64)),
    "ultralytics": lambda points: YoloPolygon((np.array(points) / SIDE).astype(np.float32)),
    "PIL.ImageDraw": lambda points: PillowPolygon(np.array(points, np.float64)),
    "labelme": lambda points: PillowPolygon(np.array(points, np.float64)),
}
"""The shape of ours that paints as a tool."""


def test_the_tables_are_those_of_the_kept_masks() -> None:
    assert rasterising_page.tables() in rasterising_page.PAGE.read_text(), "run: tools/run facts.rasterising_page"


def test_each_shape_has_a_small_picture() -> None:
    pictures = {path.stem: path.stat().st_size for path in rasterising_page.PICTURES.glob("*.png")}
    assert pictures.keys() == SHAPES.keys()
    assert max(pictures.values()) < 100_000
    assert rasterising_page.picture(rasterising_page.groups("star"), SHAPES["star"][1]).width > 10 * SIDE


@pytest.mark.parametrize("tool", OURS)
def test_our_shapes_paint_as_the_page_says(tool: str) -> None:
    masks = rasterising_page.tools()[tool]
    for shape, (_, points) in SHAPES.items():
        painted, mask = np.zeros((SIDE, SIDE), np.bool_), OURS[tool](points).paint((SIDE, SIDE))
        window(painted, mask)[mask.inside] = True
        assert text_of(painted) == text_of(masks[shape]), shape
