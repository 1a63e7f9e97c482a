"""Label Studio: a JSON list of tasks, each with the annotations of a picture.

A polygon is painted as pycocotools paints it in the COCO file that Label Studio exports. A brush and a bitmask have the
pixels whose alpha is above 0. An ellipse, which no export paints, has the pixels with their centres in it. If there
are several annotations, the newest that is not cancelled counts, and the objects of the others are counted as lost.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from packer.annotations.annotation import NOTHING, AnnotatedPicture, Annotation, Mask, Shape
from packer.annotations.brush_code import BrushCode
from packer.annotations.coco_polygon import polygon_of
from packer.annotations.json_values import parse_json, points_of, size_of
from packer.annotations.picture_format import AnnotationFormat
from packer.annotations.png_pixels import png_pixels
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "label_studio"
RULE = "label_studio 2"
_REGIONS = {
    "polygon": ("polygon", "polygonlabels"),
    "brush": ("brush", "brushlabels"),
    "ellipse": ("ellipse", "ellipselabels"),
    "bitmask": ("bitmask", "bitmasklabels"),
}
_NOT_PAINTED = {
    "rectangle": "with a box and no outline",
    "keypoint": "of the kind 'keypoint', which has no outline",
    "vector": "of the kind 'vector', which has no outline",
}
_UPLOADED = re.compile(r"^data/upload/(\d+/)?")
"""The address of an uploaded picture, before its name: Label Studio has a folder for each project."""
_PNG_ADDRESS = "data:image/png;base64,"
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif")


@dataclass(frozen=True)
class RotatedEllipse:
    """The pixels with their centres in an ellipse."""

    x: float
    y: float
    across: float
    """The radius along the rows before it is turned."""
    down: float
    degrees: float
    """Clockwise."""

    def paint(self, size: Size) -> Mask:
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        wide, high = math.hypot(self.across * cos, self.down * sin), math.hypot(self.across * sin, self.down * cos)
        left, right = max(math.floor(self.x - wide), 0), min(math.ceil(self.x + wide), size[1])
        top, bottom = max(math.floor(self.y - high), 0), min(math.ceil(self.y + high), size[0])
        if left >= right or top >= bottom or not self.across or not self.down:
            return NOTHING
        x, y = np.arange(left, right) + 0.5 - self.x, np.arange(top, bottom)[:, None] + 0.5 - self.y
        inside = ((x * cos + y * sin) / self.across) ** 2 + ((y * cos - x * sin) / self.down) ** 2 <= 1
        return Mask(top, left, inside)


@dataclass(frozen=True)
class Bitmask:
    """The address of a PNG that holds its bytes: black pixels on transparent ground, as large as the picture."""

    address: str
    size: Size

    def paint(self, size: Size) -> Mask:
        try:
            data = b64decode(self.address.removeprefix(_PNG_ADDRESS), validate=True)
        except ValueError:
            raise BadPair("has a bitmask that is not a PNG in base64") from None
        pixels = png_pixels(data, self.size)
        if not pixels.shape[:2] == self.size == size:
            actual, expected = ("x".join(map(str, sides)) for sides in (pixels.shape[:2], size))
            raise BadPair(f"has a bitmask of {actual}, and the picture is {expected} (height x width)")
        if pixels.ndim == 2:
            raise BadPair("has a bitmask without transparency, which covers the whole picture")
        return Mask(0, 0, pixels[..., 3] != 0)


def is_task(value: object) -> bool:
    """Check that an item of a list is a task of Label Studio."""
    return isinstance(value, dict) and isinstance(value.get("data"), dict) and isinstance(_made(value), list)


def picture_of(task: Mapping[str, Any]) -> str | None:
    """Return the path of the picture of a task; None for a task without annotations, which has no label."""
    return _path_of(task) if _counting(task) is not None else None


def read(raw: bytes) -> AnnotatedPicture:
    """Return the objects of a task."""
    task = parse_json(raw)
    if not is_task(task):
        raise BadPair("is not a task of Label Studio: it has no data and annotations")
    newest = _counting(task)
    if newest is None:
        raise BadPair("has no annotation that is not cancelled")
    lost = Counter[str]()
    for other in _valid(task):
        if other is not newest and (count := sum(map(_is_region, _results(other)))):
            lost["of an earlier annotation of the same picture"] += count
    results = [result for result in _results(newest) if _is_region(result)]
    if len(pictures := {(str(result.get("to_name")), str(result.get("item_index") or 0)) for result in results}) > 1:
        raise BadPair(f"has regions of {len(pictures)} pictures; a task of one picture is read")
    labelled = {str(result.get("id")) for result in results if _labels(result)}
    annotations, sizes = [], set[Size]()
    for number, result in enumerate(results, 1):
        try:
            sizes.add(size_of(result, "original_height", "original_width"))
            kind, labels = _kind(result), _labels(result)
            if not labels and str(result.get("id")) in labelled:
                continue  # the label of this region is in another result
            if kind in _NOT_PAINTED or not labels:
                lost[_NOT_PAINTED.get(kind, "without a label")] += 1
                continue
            shape = _SHAPES[kind](result["value"], *size_of(result, "original_height", "original_width"))
        except BadPair as error:
            raise BadPair(f"region {number}: {error}") from None
        annotations += [Annotation(label, (shape,)) for label in labels]
    if len(sizes) > 1:
        raise BadPair("has regions of pictures of different sizes")
    return AnnotatedPicture(tuple(annotations), next(iter(sizes), None), _path_of(task), lost)


def _made(task: Mapping[str, Any]) -> Any:
    return task.get("annotations", task.get("completions"))


def _valid(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the annotations that were not cancelled."""
    made = _made(task)
    tables = [table for table in made if isinstance(table, dict)] if isinstance(made, list) else []
    return [table for table in tables if not table.get("was_cancelled") and not table.get("skipped")]


def _counting(task: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the newest annotation that counts. Of equally old ones the first, as the converter sorts them."""
    return max(_valid(task), key=lambda annotation: str(annotation.get("created_at", "")), default=None)


def _results(annotation: Mapping[str, Any]) -> list[dict[str, Any]]:
    results = annotation.get("result") or []
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise BadPair("has an annotation without a list of results")
    return results


def _is_region(result: Mapping[str, Any]) -> bool:
    """Tell regions of the picture from answers about the whole picture or a region."""
    return _kind(result) in (*_REGIONS, *_NOT_PAINTED)


def _kind(result: Mapping[str, Any]) -> str:
    """Return polygon, brush and so on. A result of the type `labels` has the values of one of them."""
    kind = str(result.get("type")).lower()
    value = result.get("value")
    if kind == "labels" and isinstance(value, dict):
        keys = {
            "rle": "brush",
            "imageDataURL": "bitmask",
            "points": "polygon",
            "radiusX": "ellipse",
            "height": "rectangle",
            "x": "keypoint",
        }
        return next((name for key, name in keys.items() if key in value), "")
    return kind.removesuffix("labels")


def _labels(result: Mapping[str, Any]) -> list[str]:
    """Return the labels of a region. Each of them makes an object."""
    value = result.get("value")
    if not isinstance(value, dict):
        raise BadPair("has no value")
    labels = value.get(str(result.get("type")).lower()) or value.get(f"{_kind(result)}labels") or []
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise BadPair("has labels that are not texts")
    return labels


def _polygon(value: Mapping[str, Any], height: int, width: int) -> Shape:
    return polygon_of(points_of(value.get("points")) / 100 * (width, height))


def _brush(value: Mapping[str, Any], height: int, width: int) -> Shape:
    code = value.get("rle")
    if not isinstance(code, list):
        raise BadPair("has a brush without run lengths")
    try:
        return BrushCode(bytes(code), (height, width))
    except (TypeError, ValueError):
        raise BadPair("has run lengths that are not bytes") from None


def _ellipse(value: Mapping[str, Any], height: int, width: int) -> Shape:
    numbers = points_of([[value.get("x"), value.get("y")], [value.get("radiusX"), value.get("radiusY")]])
    (x, y), (across, down) = (numbers / 100 * (width, height)).tolist()
    degrees = points_of([[value.get("rotation") or 0, 0]])[0, 0]
    if across < 0 or down < 0:
        raise BadPair("has an ellipse with a negative radius")
    return RotatedEllipse(x, y, across, down, float(degrees))


def _bitmask(value: Mapping[str, Any], height: int, width: int) -> Shape:
    address = value.get("imageDataURL")
    if not isinstance(address, str) or not address.startswith(_PNG_ADDRESS):
        raise BadPair(f"has a bitmask whose imageDataURL is not {_PNG_ADDRESS}...")
    return Bitmask(address, (height, width))


_SHAPES: dict[str, Callable[[Mapping[str, Any], int, int], Shape]] = {
    "polygon": _polygon,
    "brush": _brush,
    "ellipse": _ellipse,
    "bitmask": _bitmask,
}


def _path_of(task: Mapping[str, Any]) -> str:
    """Return the path of the picture: the path after `?d=` of local files, or the path of an address."""
    data = task["data"]
    texts = [text for text in (data.get("image"), *data.values(), task.get("file_upload")) if isinstance(text, str)]
    for text in texts:
        try:
            parts = urlsplit(text)
        except ValueError:
            continue
        path = parse_qs(parts.query).get("d", [""])[0] or unquote(parts.path)
        if path.lower().endswith(_PICTURES):
            return _UPLOADED.sub("", path.lstrip("/"))
    raise BadPair(f"names no picture in its data {json.dumps(data)[:60]}")


FORMAT = AnnotationFormat(name=NAME, rule=RULE)
