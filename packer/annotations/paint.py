"""Paint the objects of a picture: one canvas has the number of the object that each pixel shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import MOST_OBJECTS, NOTHING, AnnotatedPicture, Annotation, Mask
from packer.classes.overlaps import AREA, AS_CLASS, CLASS, FILE, IGNORE
from packer.errors import BadPair
from readers.contract.kernels import fits_kernels, kernel
from readers.contract.receipt_facts import PAINTED, count_text
from readers.contract.tiles import Size

KERNEL = kernel("packer.annotations.canvas_kernel")
LOST_LATER = "objects lost by the stored size"
UNDER = "pixels under other objects"


@dataclass(frozen=True)
class Brush:
    """The rules of painting, and the number that each category has in a label. Others are not painted."""

    numbers: Mapping[str, int]
    uncovered: int = 0
    """The number of pixels that no object covers."""
    ignored: int = MOST_OBJECTS
    order: str = FILE
    crowds: str = AS_CLASS
    elsewhere: frozenset[str] = frozenset()
    """Categories of other fields than the label. They have no number, and are not lost."""


class Canvas:
    """A painted picture. The number of an object is the place of its first annotation in the file, from 1 on."""

    def __init__(self, picture: AnnotatedPicture, size: Size, brush: Brush) -> None:
        if len(picture.annotations) > MOST_OBJECTS:
            raise BadPair(f"has {len(picture.annotations)} objects; a picture has at most {MOST_OBJECTS}")
        self._annotations, self._lost, self._size, self._brush = picture.annotations, picture.lost, size, brush
        self._counts = picture.counts
        self._known = [
            index for index, annotation in enumerate(picture.annotations) if annotation.category in brush.numbers
        ]
        self._areas = np.zeros(len(picture.annotations), np.int64)
        self.top: NDArray[Any] = np.zeros(size, np.uint8 if len(picture.annotations) < 256 else np.uint16)
        """The annotation at the top of each pixel, counted from 1; 0 for none."""
        for index in self._in_order():
            self._areas[index] = _lay(self.top, mask_of(self._annotations[index], size), index + 1)
        self._seen = self._occurring(self.top)
        self.overlap = int(self._areas.sum()) - int(np.count_nonzero(self.top))
        """The pixels that objects lose to others on top of them."""

    def label(self) -> NDArray[Any]:
        """Return the number of the category of each pixel."""
        numbers = np.full(len(self._annotations) + 1, self._brush.uncovered, np.uint16)
        for index in self._known:
            numbers[index + 1] = self._brush.ignored if self._is_ignored(index) else self._number(index)
        return self._with(numbers.astype(np.uint8 if numbers.max() < 256 else np.uint16))

    def ids(self) -> NDArray[np.uint16]:
        """Return the number of the object of each pixel; 0 for none, and in what is ignored."""
        numbers, first = np.zeros(len(self._annotations) + 1, np.uint16), dict[tuple[str, str], int]()
        for index in self._known:
            annotation = self._annotations[index]
            alone = annotation.instance is None
            number = (
                index + 1 if alone else first.setdefault((annotation.category, annotation.instance or ""), index + 1)
            )
            numbers[index + 1] = 0 if self._is_ignored(index) else number
        return self._with(numbers)

    def planes(self, categories: Sequence[str]) -> NDArray[np.uint8]:
        """Return (H,W,C) planes that are 1 where an object of the category is, whatever covers it.

        Only these show the objects that are `elsewhere`.
        """
        planes = np.zeros((*self._size, len(categories)), np.uint8)
        plane_of = {category: number for number, category in enumerate(categories)}
        for index, annotation in enumerate(self._annotations):
            if annotation.category in plane_of:
                mask = mask_of(annotation, self._size)
                self._areas[index] = np.count_nonzero(mask.inside)
                window(planes[..., plane_of[annotation.category]], mask)[mask.inside] = 1
        return planes

    def notes(self) -> tuple[str, ...]:
        """Return in words what was lost."""
        return tuple(count_text(count, what) for what, count in {**self._lost_objects, **self._counts}.items())

    def counts(self, lost_later: int = 0) -> dict[str, int]:
        """Return the number of objects that are painted, of those that are lost, and of pixels that show only one of
        several objects. Each annotation of the file is counted once. `lost_later` are lost by the stored size."""
        lost = self._lost_objects
        painted = len(self._annotations) + sum(self._lost.values()) - sum(lost.values()) - lost_later
        counts = {PAINTED: painted, **lost, LOST_LATER: lost_later, **self._counts, UNDER: self.overlap}
        return {what: count for what, count in counts.items() if count}

    def lost_at(self, top: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> int:
        """Return how many objects no pixel of these rows and columns shows.

        `top` is the top layer of the upright canvas.
        """
        lost = self._seen
        for step in (4, 1):  # a sixteenth of the pixels shows nearly all
            lost = lost & ~self._occurring(top.take(rows[::step], 0).take(columns[::step], 1))
            if not lost[1:].any():
                return 0
        return int(np.count_nonzero(lost[1:]))

    @cached_property
    def _lost_objects(self) -> Counter[str]:
        """The objects that no field shows, by the reason."""
        lost = Counter({f"objects {reason}": count for reason, count in self._lost.items()})
        for index, annotation in enumerate(self._annotations):
            is_elsewhere = annotation.category in self._brush.elsewhere
            if not is_elsewhere and annotation.category not in self._brush.numbers:
                lost[f"objects of the category {annotation.category!r}, which is in no class"] += 1
            elif not self._areas[index]:
                lost["objects without a pixel"] += 1
            elif not is_elsewhere and not self._seen[index + 1]:
                lost["objects hidden by others"] += 1
        return lost

    def _occurring(self, top: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for 0 and each annotation whether it occurs. One pixel of each run is enough to know."""
        if KERNEL is not None and top.dtype == np.uint8 and fits_kernels(top):
            marked = np.zeros(256, np.uint8)
            KERNEL.marked(top, marked)
            return marked[: len(self._annotations) + 1].view(np.bool_)
        flat = top.reshape(-1)
        occurring = np.zeros(len(self._annotations) + 1, np.bool_)
        occurring[flat[np.flatnonzero(flat[1:] != flat[:-1])]] = True
        occurring[flat[-1:]] = True
        return occurring

    def _with(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the number of the annotation at the top of each pixel."""
        if self.top.dtype != np.uint8:
            return np.asarray(numbers[self.top])
        table = np.zeros(256, numbers.dtype)
        table[: len(numbers)] = numbers
        if KERNEL is not None and table.dtype == np.uint8:
            out = np.empty_like(self.top)
            KERNEL.translate(self.top, table.tobytes(), out)
            return out
        return np.asarray(cv2.LUT(self.top, table))  # a tenth of the time

    def _in_order(self) -> Iterable[int]:
        """Return the annotations in the order of painting. Those that are equal stay in the order of the file."""
        if self._brush.order == CLASS:
            return sorted(self._known, key=self._number)
        if self._brush.order == AREA:
            areas = {i: np.count_nonzero(mask_of(self._annotations[i], self._size).inside) for i in self._known}
            return sorted(self._known, key=lambda index: -areas[index])
        return self._known

    def _number(self, index: int) -> int:
        return self._brush.numbers[self._annotations[index].category]

    def _is_ignored(self, index: int) -> bool:
        is_ignored_crowd = self._annotations[index].is_crowd and self._brush.crowds == IGNORE
        return is_ignored_crowd or self._number(index) == self._brush.ignored


def mask_of(annotation: Annotation, size: Size) -> Mask:
    """Return the pixels of all shapes of an object, in the smallest window that has them all."""
    if len(annotation.shapes) == 1:
        return annotation.shapes[0].paint(size)
    masks = [mask for mask in (shape.paint(size) for shape in annotation.shapes) if mask.inside.any()]
    if not masks:
        return NOTHING
    top, left = min(mask.top for mask in masks), min(mask.left for mask in masks)
    bottom = max(mask.top + mask.inside.shape[0] for mask in masks)
    right = max(mask.left + mask.inside.shape[1] for mask in masks)
    union = np.zeros((bottom - top, right - left), np.bool_)
    for mask in masks:
        window(union, mask._replace(top=mask.top - top, left=mask.left - left))[mask.inside] = True
    return Mask(top, left, union)


def _lay(top: NDArray[Any], mask: Mask, number: int) -> int:
    """Write a number to the pixels of a mask. Return how many these are."""
    part = window(top, mask)
    if KERNEL is not None and fits_kernels(mask.inside):
        return int(KERNEL.lay(mask.inside, part, number))
    part[mask.inside] = number
    return int(np.count_nonzero(mask.inside))


def window(picture: NDArray[Any], mask: Mask) -> NDArray[Any]:
    """Return the part of a picture that the window of a mask covers, to be written to."""
    height, width = mask.inside.shape
    return picture[mask.top : mask.top + height, mask.left : mask.left + width]
