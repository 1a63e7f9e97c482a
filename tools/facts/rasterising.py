"""Paint the same few polygons with the tools of the field, and keep the masks: docs/measured/rasterising.md shows them.

    tools/run facts.rasterising [TOOL ...]     in an environment with segpack and some of the tools

Tools that are not installed keep the masks that they have. Tools of one file cannot all live in one environment.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import parser

from facts.made_shapes import Points
from facts.write_facts import FACTS

SIDE = 12
SHAPES: dict[str, tuple[str, Points]] = {
    "square": ("square on whole numbers", [[2, 2], [8, 2], [8, 8], [2, 8]]),
    "half": ("square on half pixels", [[2.5, 2.5], [8.5, 2.5], [8.5, 8.5], [2.5, 8.5]]),
    "triangle": ("triangle", [[1, 1], [10.3, 3.2], [4.1, 10.4]]),
    "diagonal": ("thin diagonal", [[1, 1.2], [10.6, 9.7], [10.9, 10.3], [1.1, 1.7]]),
    "star": (
        "star",
        [[6, 0.5], [9.233, 10.45], [0.769, 4.3], [11.231, 4.3], [2.767, 10.45]],
    ),
    "ring": (
        "ring",
        [[1, 1], [11, 1], [11, 11], [1, 11], [1, 4], [4, 4], [4, 8], [8, 8], [8, 4], [1, 4]],
    ),
    "border": ("over the border", [[-3, 5], [6, -2], [14, 7], [5, 15]]),
    "small": ("smaller than a pixel", [[5.6, 5.6], [5.9, 5.6], [5.9, 5.9], [5.6, 5.9]]),
}
"""A title, and the points of each polygon in a picture of SIDE x SIDE."""
Painter = Callable[[Points], Any]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("tools", nargs="*", choices=[*TOOLS, []], help="default: all that are installed")
    wanted = options.parse_args().tools or list(TOOLS)
    path = FACTS / "rasterising.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in wanted:
        package, make = TOOLS[name]
        try:
            paint = make()
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        masks = {shape: text_of(np.asarray(paint(points))) for shape, (_, points) in SHAPES.items()}
        kept[name] = {"version": f"{package} {version(package)}", "masks": masks}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in TOOLS if name in kept)
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def text_of(mask: NDArray[Any]) -> str:
    """Return a mask as rows of # and . with a / between them."""
    return "/".join("".join("#" if pixel else "." for pixel in row) for row in mask.reshape(SIDE, SIDE))


def mask_of(text: str) -> NDArray[np.bool_]:
    """Return the mask of a text."""
    return np.array([[character == "#" for character in row] for row in text.split("/")])


def _coco() -> Painter:
    coco = import_module("pycocotools.mask")

    def paint(points: Points) -> Any:
        return coco.decode(coco.merge(coco.frPyObjects([np.ravel(points).tolist()], SIDE, SIDE)))

    return paint


def _opencv(whole: Callable[[Any], Any]) -> Callable[[], Painter]:
    def make() -> Painter:
        opencv = import_module("cv2")
        return lambda points: opencv.fillPoly(np.zeros((SIDE, SIDE), np.uint8), [np.int32(whole(np.array(points)))], 1)

    return make


def _pillow() -> Painter:
    image, drawing = import_module("PIL.Image"), import_module("PIL.ImageDraw")

    def paint(points: Points) -> Any:
        picture = image.new("L", (SIDE, SIDE))
        drawing.Draw(picture).polygon([tuple(point) for point in points], fill=1)
        return picture

    return paint


def _labelme() -> Painter:
    shape = import_module("labelme.utils.shape")
    return lambda points: shape.shape_to_mask((SIDE, SIDE), points, "polygon")


def _supervision() -> Painter:
    library = import_module("supervision")
    return lambda points: library.polygon_to_mask(np.array(points), (SIDE, SIDE))


def _ultralytics() -> Painter:
    library = import_module("ultralytics.data.utils")
    return lambda points: library.polygon2mask((SIDE, SIDE), [np.ravel(points)])


def _datumaro() -> Painter:
    library = import_module("datumaro.util.mask_tools")
    return lambda points: library.rles_to_mask([np.ravel(points).tolist()], SIDE, SIDE)


def _cvat() -> Painter:
    library = import_module("facts.cvat")
    return lambda points: library.label_of(points, (SIDE, SIDE)) > 0


def _label_studio() -> Painter:
    library = import_module("facts.label_studio")
    return lambda points: library.exported(points, SIDE, SIDE)[1]


def _supervisely() -> Painter:
    library = import_module("facts.supervisely")

    def paint(points: Points) -> Any:
        made = {"classTitle": "car", "geometryType": "polygon", "points": {"exterior": points, "interior": []}}
        return library.drawn(made, (SIDE, SIDE))

    return paint


def _skimage() -> Painter:
    draw = import_module("skimage.draw")
    return lambda points: draw.polygon2mask((SIDE, SIDE), np.array(points)[:, ::-1])


def _rasterio(all_touched: bool) -> Callable[[], Painter]:
    def make() -> Painter:
        features, transform = import_module("rasterio.features"), import_module("rasterio.transform")

        def paint(points: Points) -> Any:
            shape = {"type": "Polygon", "coordinates": [[*points, points[0]]]}
            same = transform.Affine.identity()
            return features.rasterize([(shape, 1)], (SIDE, SIDE), transform=same, all_touched=all_touched)

        return paint

    return make


def _matplotlib(centre: float) -> Callable[[], Painter]:
    def make() -> Painter:
        path = import_module("matplotlib.path")
        rows, columns = np.indices((SIDE, SIDE)) + centre
        pixels = np.stack([columns.ravel(), rows.ravel()], 1)
        return lambda points: path.Path([*points, points[0]], closed=True).contains_points(pixels)

    return make


TOOLS: dict[str, tuple[str, Callable[[], Painter]]] = {
    "pycocotools": ("pycocotools", _coco),
    "datumaro": ("datumaro", _datumaro),
    "CVAT's export": ("datumaro", _cvat),
    "Label Studio's export": ("label-studio-sdk", _label_studio),
    "cv2.fillPoly (cut)": ("opencv-python-headless", _opencv(np.trunc)),
    "cv2.fillPoly (rounded)": ("opencv-python-headless", _opencv(np.round)),
    "supervision": ("supervision", _supervision),
    "ultralytics": ("ultralytics", _ultralytics),
    "supervisely": ("supervisely", _supervisely),
    "PIL.ImageDraw": ("pillow", _pillow),
    "labelme": ("labelme", _labelme),
    "skimage.draw": ("scikit-image", _skimage),
    "rasterio": ("rasterio", _rasterio(all_touched=False)),
    "rasterio (all touched)": ("rasterio", _rasterio(all_touched=True)),
    "matplotlib (centres)": ("matplotlib", _matplotlib(0.5)),
    "matplotlib (corners)": ("matplotlib", _matplotlib(0.0)),
}
"""The package of each tool, and its painter of a polygon in a picture of SIDE x SIDE."""
