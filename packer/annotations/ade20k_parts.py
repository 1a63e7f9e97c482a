"""ADE20K of 2021, full annotations: `*.json` with an outline of each object and part. The plain rule paints them.

A wheel covers its car and a door covers its house, so they belong in a field of overlapping classes. The pictures
`*_seg.png` and `*_parts_1.png` have the pixels as the data set gives them; their codec is `ade20k`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from packer.annotations.annotation import AnnotatedPicture, Annotation
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.json_values import parse_json, points_of, table_or_none, tables, text_of
from packer.annotations.picture_format import PictureFormat
from packer.errors import BadPair

NAME = "ade20k_parts"
RULE = "ade20k_parts 1"


def knows(data: bytes) -> bool:
    """Return whether a file has the keys of ADE20K."""
    annotation = (table_or_none(data) or {}).get("annotation")
    return isinstance(annotation, dict) and {"imsize", "object", "scene"} <= annotation.keys()


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return objects and parts in the order of the file. Their categories are names such as `car, auto, automobile`."""
    annotation = parse_json(data).get("annotation")
    if not isinstance(annotation, dict):
        raise BadPair("has no table 'annotation'")
    annotations, lost = [], Counter[str]()
    for item in _parts_last(tables(annotation, "object")):
        polygon = item.get("polygon")
        if not isinstance(polygon, dict):
            raise BadPair("has an object without a polygon")
        xs, ys = polygon.get("x"), polygon.get("y")
        if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
            raise BadPair("has a polygon whose x and y are not lists of one length")
        if xs:
            shape = EvenOddPolygon((points_of([list(point) for point in zip(xs, ys, strict=True)]),))
            annotations.append(Annotation(text_of(item, "name"), (shape,)))
        else:
            lost["without an outline"] += 1
    return AnnotatedPicture(tuple(annotations), _size(annotation.get("imsize")), lost=lost)


def _parts_last(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts behind what they are parts of."""
    return sorted(objects, key=_level)


def _level(item: dict[str, Any]) -> int:
    parts = item.get("parts")
    level = parts.get("part_level") if isinstance(parts, dict) else None
    return level if type(level) is int else 0


def _size(size: Any) -> tuple[int, int]:
    """Return the height and width of `imsize`, which also has the number of channels."""
    if not isinstance(size, list) or len(size) < 2 or not all(type(side) is int and side > 0 for side in size[:2]):
        raise BadPair("has no imsize of positive whole numbers")
    return size[0], size[1]


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read)
