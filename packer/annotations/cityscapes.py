"""Cityscapes: `*_gtFine_polygons.json`, painted as `json2labelImg` and `json2instanceImg` of cityscapesScripts do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PIL import __version__

from packer.annotations.annotation import AnnotatedPicture, Annotation
from packer.annotations.json_values import parse_json, points_of, size_of, table_or_none, tables, text_of
from packer.annotations.picture_format import PictureFormat
from packer.annotations.pillow_polygon import PillowPolygon

NAME = "cityscapes"
RULE = f"cityscapes 1, Pillow {__version__}"
CATEGORIES = (
    *("unlabeled", "ego vehicle", "rectification border", "out of roi", "static", "dynamic", "ground", "road"),
    *("sidewalk", "parking", "rail track", "building", "wall", "fence", "guard rail", "bridge", "tunnel", "pole"),
    *("polegroup", "traffic light", "traffic sign", "vegetation", "terrain", "sky", "person", "rider", "car", "truck"),
    *("bus", "caravan", "trailer", "train", "motorcycle", "bicycle"),
)
"""The categories in the order of their ids, from 0 on: the numbers of `*_labelIds.png`."""
_FIRST_WITH_INSTANCES = CATEGORIES.index("person")
_STUFF = frozenset(CATEGORIES[:_FIRST_WITH_INSTANCES])
_NOT_PAINTED = "license plate"
"""The category whose id is negative."""
_GROUP = "group"
"""The end of a label that stands for many objects, such as `cargroup`."""


def knows(data: bytes) -> bool:
    """Check that a file has the keys of Cityscapes."""
    document = table_or_none(data) or {}
    return {"imgHeight", "imgWidth", "objects"} <= document.keys()


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Read the objects of a picture. The later one covers the earlier one."""
    document = parse_json(data)
    annotations, lost = [], Counter[str]()
    for item in tables(document, "objects"):
        label, points = text_of(item, "label"), points_of(item.get("polygon"))
        if item.get("deleted"):
            lost["marked as deleted"] += 1
        elif label.removesuffix(_GROUP) == _NOT_PAINTED:
            lost[f"of the category {_NOT_PAINTED!r}, which Cityscapes does not paint"] += 1
        elif len(points) < 2:
            lost["with fewer than 2 points"] += 1
        else:
            annotations.append(_annotation(label, PillowPolygon(points)))
    return AnnotatedPicture(tuple(annotations), size_of(document, "imgHeight", "imgWidth"), lost=lost)


def _annotation(label: str, shape: PillowPolygon) -> Annotation:
    """Return an object. Groups of a category, and stuff such as road, have one id for the whole picture."""
    is_group = label not in CATEGORIES and label.removesuffix(_GROUP) in CATEGORIES
    category = label.removesuffix(_GROUP) if is_group else label
    return Annotation(category, (shape,), "" if is_group or category in _STUFF else None, is_group)


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read, categories=CATEGORIES)
