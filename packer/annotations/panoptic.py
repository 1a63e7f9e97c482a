"""COCO panoptic: an annotation lists the segments of a picture, and names a PNG with the id of each pixel's segment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import MOST_OBJECTS, AnnotatedPicture, Annotation, Mask
from packer.annotations.coco import Id, id_of, name_of, size_of
from packer.annotations.json_stream import parse
from packer.annotations.picture_format import AnnotationFormat
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "panoptic"
RULE = "panoptic ids 1"
IDS = 1 << 24
"""The ids that a colour of 8 bits can be."""
VOID = 0
LONGEST = 4096
"""The most characters of the path of a PNG."""
STRIP = 1 << 20
"""The pixels whose runs are looked at together."""


@dataclass(frozen=True)
class Segment:
    """The pixels of a number. All are in the window. The picture has the size of the numbers."""

    numbers: NDArray[np.uint16]
    number: int
    window: tuple[slice, slice]

    def paint(self, size: Size) -> Mask:
        rows, columns = self.window
        return Mask(rows.start, columns.start, self.numbers[self.window] == self.number)


def read(
    picture: bytes, annotations: Sequence[bytes], categories: Mapping[Id, str], ids: NDArray[np.uint32] | None
) -> AnnotatedPicture:
    """Return the segments of a picture. `ids` has the id of each pixel; None: the file has no annotation of it."""
    facts = parse(picture)
    segments = [segment for raw in annotations for segment in segments_of(parse(raw))]
    if ids is None:
        return AnnotatedPicture((), size_of(facts), name_of(facts))
    if len(segments) > MOST_OBJECTS:
        raise BadPair(f"has {len(segments)} segments; a picture has at most {MOST_OBJECTS}")
    numbers, strays = _numbered([_id(segment) for segment in segments], ids)
    windows = _windows(numbers, len(segments))
    objects: list[Annotation] = []
    lost = Counter[str]()
    for number, segment in enumerate(segments, 1):
        category = categories.get(id_of(segment.get("category_id")))
        if category is None:
            lost["of a category that the file does not list"] += 1
            continue
        shapes = (Segment(numbers, number, windows[number]),) if number in windows else ()
        objects.append(Annotation(category, shapes, is_crowd=bool(segment.get("iscrowd"))))
    counts = {"pixels of no segment": strays} if strays else {}
    return AnnotatedPicture(tuple(objects), (ids.shape[0], ids.shape[1]), name_of(facts), lost, counts)


def segments_of(annotation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the segments that an annotation lists."""
    segments = annotation.get("segments_info")
    if not isinstance(segments, list) or not all(isinstance(segment, dict) for segment in segments):
        raise BadPair("has segments_info that is not a list of tables")
    return segments


def png_of(annotation: Mapping[str, Any]) -> str:
    """Return the name of the PNG of an annotation. It never leads out of a folder."""
    name = annotation.get("file_name")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST or name.startswith("/") or not name.isprintable():
        raise BadPair(f"has a file_name of a PNG that is not one: {str(name)[:60]!r}")
    if ".." in name.split("/"):
        raise BadPair(f"has a PNG that is not below its folder: {name[:60]!r}")
    return name


def of_pictures(pngs: Iterable[str], owners: Iterable[int], count: int) -> list[str]:
    """Return the PNG of each picture; empty for one without. `owners` are the numbers of the pictures of the PNGs."""
    listed = [""] * count
    for png, owner in zip(pngs, owners, strict=True):
        if listed[owner]:
            raise BadPair(f"has two annotations of one picture: {listed[owner][:60]} and {png[:60]}")
        listed[owner] = png
    return listed


def _id(segment: Mapping[str, Any]) -> int:
    number = id_of(segment.get("id"))
    if isinstance(number, str):
        raise BadPair(f"has a segment whose id is a text: {number[:60]!r}")
    return number


def _numbered(listed: Sequence[int], ids: NDArray[np.uint32]) -> tuple[NDArray[np.uint16], int]:
    """Return for each pixel the number of its segment, from 1 on, and how many pixels have an id that none has."""
    if len(set(listed)) < len(listed):
        twice = Counter(listed).most_common(1)[0][0]
        raise BadPair(f"has two segments with the id {str(twice)[:60]}")
    table = np.zeros(IDS, np.uint16)  # only the pages that are used take memory
    for number, segment_id in enumerate(listed, 1):
        if VOID < segment_id < IDS:  # the others cannot have a pixel
            table[segment_id] = number
    numbers = table[ids]
    return numbers, int(np.count_nonzero(ids)) - int(np.count_nonzero(numbers))


def _windows(numbers: NDArray[np.uint16], count: int) -> dict[int, tuple[slice, slice]]:
    """Return the smallest window of each number that has pixels, found by runs of equal pixels in a row."""
    height, width = numbers.shape
    tops, lefts = np.full(count + 1, height), np.full(count + 1, width)
    bottoms, rights = np.zeros((2, count + 1), np.int64)
    for top in range(0, height, step := max(1, STRIP // width)):
        strip = numbers[top : top + step]
        is_start = np.ones(strip.shape, np.bool_)
        is_start[:, 1:] = strip[:, 1:] != strip[:, :-1]
        starts = np.flatnonzero(is_start)
        values = strip.ravel()[starts]
        rows, columns = np.divmod(starts, width)
        np.minimum.at(tops, values, rows + top)
        np.maximum.at(bottoms, values, rows + top + 1)
        np.minimum.at(lefts, values, columns)
        np.maximum.at(rights, values, columns + np.diff(starts, append=strip.size))
    boxes = np.stack([tops, bottoms, lefts, rights], 1).tolist()
    return {number: (slice(*box[:2]), slice(*box[2:])) for number, box in enumerate(boxes) if number and box[1]}


FORMAT = AnnotationFormat(name=NAME, rule=RULE, is_of_stored=True)
