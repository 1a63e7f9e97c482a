"""LabelMe of the web, an XML file for each picture, as CVAT and Datumaro write it, too. The plain rule paints it.

The tool itself paints in the browser and in Matlab, so there is nothing that could be installed to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from packer.annotations.annotation import AnnotatedPicture, Annotation
from packer.annotations.even_odd import EvenOddPolygon, Points
from packer.annotations.json_values import MOST_POINTS, checked_points
from packer.annotations.picture_format import PictureFormat
from packer.annotations.xml_elements import numbers_in, parse_xml, root_or_none, size_in, text_in
from packer.errors import BadPair

NAME = "labelme_web"
RULE = "labelme_web 1"
BOX = "bounding_box"


def knows(data: bytes) -> bool:
    """Return whether a file has an object with points."""
    root = root_or_none(data)
    return root is not None and root.tag == "annotation" and root.find("object/polygon/pt") is not None


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return the objects of a picture in the order of the file."""
    root = parse_xml(data)
    if root.tag != "annotation":
        raise BadPair("is not an <annotation> of LabelMe")
    annotations, lost = [], Counter[str]()
    for element in root.iterfind("object"):
        name = text_in(element, "name")
        if name is None:
            raise BadPair("has an object without a name")
        if reason := _reason(element):
            lost[reason] += 1
        else:
            shapes = tuple(EvenOddPolygon((_points(polygon),)) for polygon in element.iterfind("polygon"))
            annotations.append(Annotation(name, shapes))
    size, file = size_in(root, "imagesize/nrows", "imagesize/ncols"), text_in(root, "filename")
    return AnnotatedPicture(tuple(annotations), size, file, lost)


def _reason(item: Element) -> str | None:
    """Return why an object is not painted. None: it is."""
    if text_in(item, "deleted") not in (None, "0"):
        return "marked as deleted"
    if item.find("segm") is not None:
        return "with a mask in another file"
    if text_in(item, "type") == BOX or item.find("polygon") is None:
        return "with a box and no outline"
    return None


def _points(polygon: Element) -> Points:
    """Return the points <pt><x/><y/></pt> of a polygon."""
    numbers = []
    for point in polygon.iterfind("pt"):
        x, y = point.find("x"), point.find("y")
        if x is None or y is None:
            raise BadPair("has a point without x and y")
        numbers += [x, y]
    if len(numbers) > 2 * MOST_POINTS:
        raise BadPair(f"has an object of {len(numbers) // 2} points; {MOST_POINTS} is the most")
    return checked_points(np.array(numbers_in(numbers), np.float64).reshape(-1, 2))


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read)
