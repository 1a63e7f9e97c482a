"""Pascal VOC XML with polygons, as Roboflow and others write it, painted as `supervision` reads and paints it.

Coordinates count from 1, so 1 is taken away from each; they are rounded, and `cv2.fillPoly` paints them. Boxes are not
painted: the label pictures of VOC itself are read as labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, AnnotatedPicture, Annotation, Mask
from packer.annotations.json_values import MOST_POINTS, checked_points
from packer.annotations.opencv_polygon import PAINTER, fill
from packer.annotations.picture_format import PictureFormat
from packer.annotations.xml_elements import numbers_in, parse_xml, root_or_none, size_in, text_in
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "voc"
RULE = f"voc 1, {PAINTER}"
BOX_ONLY = "with a box and no outline"


def knows(data: bytes) -> bool:
    """Return whether a file has an object with a polygon of numbered points."""
    root = root_or_none(data)
    return root is not None and root.tag == "annotation" and root.find("object/polygon/x1") is not None


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return the objects of a picture in the order of the file."""
    root = parse_xml(data)
    if root.tag != "annotation":
        raise BadPair("is not an <annotation> of Pascal VOC")
    annotations, lost = [], Counter[str]()
    for element in root.iterfind("object"):
        name = text_in(element, "name")
        if name is None:
            raise BadPair("has an object without a name")
        shapes = tuple(VocPolygon(_points(polygon)) for polygon in element.iterfind("polygon"))
        if shapes:
            annotations.append(Annotation(name, shapes))
        else:
            lost[BOX_ONLY] += 1
    if lost and not annotations:
        count = lost.total()
        raise BadPair(f"has {count} {'box' if count == 1 else 'boxes'} and no outline; a label needs outlines")
    size, file = size_in(root, "size/height", "size/width"), text_in(root, "filename")
    return AnnotatedPicture(tuple(annotations), size, file, lost)


@dataclass(frozen=True, eq=False)
class VocPolygon:
    """A polygon in whole pixels from 0 on. Fewer than three points have no pixel, as in `supervision`."""

    points: NDArray[np.int64]

    def paint(self, size: Size) -> Mask:
        return fill(size, self.points) if len(self.points) >= 3 else NOTHING


def _points(polygon: Element) -> NDArray[np.int64]:
    """Return the points <x1>, <y1>, <x2>, ... of a polygon."""
    numbers = numbers_in(list(polygon.iter())[1:])
    if len(numbers) % 2 or len(numbers) > 2 * MOST_POINTS:
        raise BadPair(f"has a polygon of {len(numbers)} numbers; expected x and y of at most {MOST_POINTS} points")
    points = checked_points(np.array(numbers, np.float64).reshape(-1, 2))
    return np.round(points - 1).astype(np.int64)


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read)
