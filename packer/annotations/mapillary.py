"""Mapillary Vistas, version 2: `polygons/*.json`. The plain rule paints them; the data set names no program that does.

Its own label pictures are read as labels. The polygons also give what these hide: objects below others.
"""

from __future__ import annotations

from collections.abc import Sequence

from packer.annotations.annotation import AnnotatedPicture, Annotation
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.json_values import parse_json, points_of, size_of, table_or_none, tables, text_of
from packer.annotations.picture_format import PictureFormat

NAME = "mapillary"
RULE = "mapillary 1"


def knows(data: bytes) -> bool:
    """Return whether a file has the keys of Mapillary, and categories such as `construction--flat--road`."""
    document = table_or_none(data) or {}
    if not {"height", "width", "objects"} <= document.keys() or not isinstance(document["objects"], list):
        return False
    objects = document["objects"][:100]
    return bool(objects) and all(isinstance(item, dict) and "--" in str(item.get("label")) for item in objects)


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return the objects of a picture. The later one covers the earlier one."""
    document = parse_json(data)
    annotations = [
        Annotation(text_of(item, "label"), (EvenOddPolygon((points_of(item.get("polygon")),)),))
        for item in tables(document, "objects")
    ]
    return AnnotatedPicture(tuple(annotations), size_of(document, "height", "width"))


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read)
