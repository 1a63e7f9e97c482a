"""`ClassPicture`: a label as numbers, and the class of each. A number or colour is judged once, not at every pixel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import LabelFile
from packer.decoding.header import FilePixels
from packer.errors import BadPair
from packer.pixels.class_lookup import IGNORE, Index
from readers.contract.kernels import kernel

KERNEL = kernel("packer.pixels.distinct_kernel")
MOST = 256


@dataclass(frozen=True)
class ClassPicture:
    """The upright (H,W) numbers of a label, and the class index of each of 256 numbers.

    Without `classes` the numbers are class indices already.
    """

    numbers: NDArray[np.uint8] | Index
    classes: Index | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.numbers.shape[0], self.numbers.shape[1]

    def index(self) -> Index:
        """Return the class index of each pixel."""
        return np.asarray(self.numbers if self.classes is None else cv2.LUT(self.numbers, self.classes), np.uint16)

    def ignored_outside(self, mask: NDArray[np.bool_]) -> ClassPicture:
        """Return the same label, ignored where the mask is false."""
        return ClassPicture(np.where(mask, self.index(), np.uint16(IGNORE)))


def classify(label: LabelFile, judge: Callable[[LabelFile], Index]) -> ClassPicture:
    """Return the classes of a label by `judge`, which gives a pixel's class by its number or colour alone, or refuses.

    It sees a label with one pixel for each number or colour that occurs. If it refuses that, it sees the whole label,
    because its words count pixels.
    """
    distinct = _distinct(label)
    if distinct is not None:
        numbers, used, each_once = distinct
        try:
            classes = np.zeros(MOST, np.uint16)
            classes[used] = judge(each_once)[0]
        except BadPair:
            pass
        else:
            return ClassPicture(numbers, classes)
    return ClassPicture(judge(label))


def from_indices(index: NDArray[Any], classes: int) -> ClassPicture:
    """Return a label that holds class indices. Ignored pixels have the largest number of its type."""
    ignored = np.iinfo(index.dtype).max
    after = index + index.dtype.type(1)  # ignored pixels become 0: one comparison less
    if after.size and after.max() > classes:
        raise BadPair(f"has numbers in its label that are in none of {classes} classes")
    if index.dtype != np.uint8:
        return ClassPicture(index)
    table = np.arange(MOST, dtype=np.uint16)
    table[ignored] = IGNORE
    return ClassPicture(index, table)


def _distinct(label: LabelFile) -> tuple[NDArray[np.uint8], NDArray[np.intp], LabelFile] | None:
    """Return a label as numbers, the numbers that occur, and a label of one row with a pixel for each of these.

    None without the kernel, and for 16 bits, transparent pixels and more than 256 colours.
    """
    pixels, palette = label.stored.numbers, label.stored.palette
    is_number = pixels.ndim == 2 and label.header.channels == 1  # what tRNS marks is still a number
    if KERNEL is None or pixels.dtype != np.uint8 or not (is_number or label.stored.opacity is None):
        return None
    pixels = label.upright_numbers
    if pixels.ndim == 2:
        numbers, occurs = pixels, np.empty(MOST, np.bool_)
        KERNEL.numbers(numbers, occurs)
        used = np.flatnonzero(occurs)
        row = used.astype(np.uint8)
    else:
        numbers, row = np.empty(pixels.shape[:2], np.uint8), np.empty((MOST, 3), np.uint8)
        count = KERNEL.colours(pixels.reshape(len(pixels), -1), numbers, row.reshape(-1))
        if count < 0:
            return None
        used, row = np.arange(count), row[:count]
    header = replace(label.header, stored_width=len(used), stored_height=1, orientation=1)
    return numbers, used, LabelFile(header, FilePixels(row[None], palette=palette))
