"""Annotations of COCO: polygons, run lengths and crowds. pycocotools says which pixels they have.

A file has lists of `images`, `annotations` and `categories` for many pictures: `PictureIndex` finds the entries of each
picture.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from packer.annotations.annotation import AnnotatedPicture, Annotation, Shape
from packer.annotations.coco_polygon import MOST_POINTS, coco_polygon
from packer.annotations.json_stream import parse
from packer.annotations.picture_format import AnnotationFormat
from packer.annotations.run_lengths import run_lengths
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "coco"
RULE = "coco polygons 1"
ONE_PICTURE = (
    "is of one picture, as files of SA-1B are, and is not read; put all files into one COCO file: "
    "images with an id, annotations with image_id and category_id, and categories"
)
Id: TypeAlias = "int | str"


def read(picture: bytes, annotations: Sequence[bytes], categories: Mapping[Id, str]) -> AnnotatedPicture:
    """Return the objects of a picture from its item in `images`, and its items in `annotations` in their order."""
    facts = parse(picture)
    objects: list[Annotation] = []
    lost = Counter[str]()
    for raw in annotations:
        annotation = parse(raw)
        category = categories.get(id_of(annotation.get("category_id")))
        if category is None:
            lost["of a category that the file does not list"] += 1
            continue
        try:
            shapes = _shapes(annotation.get("segmentation"))
        except BadPair as bad:
            raise BadPair(f"annotation {str(annotation.get('id'))[:60]} {bad}") from None
        if shapes:
            objects.append(Annotation(category, shapes, is_crowd=bool(annotation.get("iscrowd"))))
        else:
            lost[why_lost(annotation)] += 1
    return AnnotatedPicture(tuple(objects), size_of(facts), name_of(facts), lost)


def why_lost(annotation: Mapping[str, Any]) -> str:
    """Return why an annotation without a segmentation cannot be painted."""
    return "with a box and no outline" if annotation.get("bbox") else "without an outline"


def id_of(value: Any) -> Id:
    """Return an id, which most tools write as a whole number. Raise BadPair if it is neither that nor a text."""
    if type(value) is int or (isinstance(value, str) and value):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise BadPair(f"has an id that is neither a whole number nor a text: {str(value)[:60]}")


def name_of(picture: Mapping[str, Any]) -> str:
    """Return the name of a picture, which may have folders; in LVIS it is the end of an address."""
    name = picture.get("file_name")
    if name is None and isinstance(url := picture.get("coco_url"), str):
        name = "/".join(url.split("/")[-2:])
    if not isinstance(name, str) or not name:
        raise BadPair("has an image without a file_name")
    return unicodedata.normalize("NFC", name.replace("\\", "/").removeprefix("./"))


def size_of(picture: Mapping[str, Any]) -> Size | None:
    """Return the size of a picture, if the file has it."""
    size = picture.get("height"), picture.get("width")
    if size == (None, None):
        return None
    if not all(type(side) is int and 0 < side < 1 << 31 for side in size):
        raise BadPair(f"has a height and width of {str(size)[:60]}")
    return size  # type: ignore[return-value]


def _shapes(segmentation: Any) -> tuple[Shape, ...]:
    if isinstance(segmentation, dict) and segmentation:
        return (run_lengths(segmentation.get("counts"), segmentation.get("size")),)
    if isinstance(segmentation, list):
        rings = tuple(map(coco_polygon, segmentation))
        if (count := sum(len(ring.points) for ring in rings)) > MOST_POINTS:
            raise BadPair(f"has outlines of {count} points; {MOST_POINTS} are read at most")
        return rings
    if segmentation:
        raise BadPair("has a segmentation that is neither a list nor a table")
    return ()


FORMAT = AnnotationFormat(name=NAME, rule=RULE, is_of_stored=True)
