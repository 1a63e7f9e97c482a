"""`LabelCodec`: from the bytes of a label file to class indices. Pixels in no class are named with their position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import LabelFile, read_label
from packer.decoding.header import Picture
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair
from packer.pixels.class_lookup import IGNORE, UNKNOWN, Index, Lookup, Numbers, describe_strays, stray_name
from packer.pixels.class_picture import ClassPicture, classify
from packer.pixels.label_advice import TRANSPARENT_GRAY, advice_on_strays
from packer.pixels.label_rules import (
    ADE20K,
    AS_THE_TABLE_SAYS,
    AUTO,
    BINARY,
    COLOUR,
    DIVISORS,
    INDEX,
    INSTANCE,
    LabelRules,
    resolve,
)
from readers.contract.classes import ClassTable


class LabelCodec:
    """Decodes labels by one class table and resolved rules."""

    def __init__(self, table: ClassTable, rules: LabelRules = AS_THE_TABLE_SAYS, max_pixels: int = MOST_PIXELS) -> None:
        self._rules = rules = resolve(rules, table)
        self._max_pixels = max_pixels
        self._lookup = Lookup(table)
        self._decode = {
            AUTO: self._either,
            INDEX: self._index,
            COLOUR: self._colour,
            BINARY: self._binary,
            ADE20K: self._ade20k,
            INSTANCE: self._instance,
        }[rules.codec]

    def decode(self, data: bytes) -> Index:
        """Return the (H,W) class indices of a label file, with IGNORE for ignored pixels."""
        return self.read(data).index()

    def read(self, data: Picture) -> ClassPicture:
        """Return a label file, or an array, as numbers, and the class index of each."""
        return self.classify(read_label(data, self._rules.lossy, self._max_pixels))

    def classify(self, label: LabelFile) -> ClassPicture:
        """Return a decoded label as numbers, and the class index of each."""
        return classify(label, self._decode)

    def _index(self, label: LabelFile) -> Index:
        numbers = _numbers(label.pixels(as_index=True))
        index = self._lookup.values(numbers)
        if self._lookup.has_colours:
            self._refuse_another_reading(label, index, "index")
        return self._resolved(index, numbers)

    def _colour(self, label: LabelFile) -> Index:
        pixels = label.pixels(as_index=False)
        if pixels.dtype != np.uint8:
            raise BadPair("is gray with 16 bits, not colour; use --label-codec index")
        if pixels.shape[2:] == (4,) and not self._lookup.has_transparent:
            raise BadPair(
                "has transparent pixels, and no colour of the class table has an alpha; "
                "add colours such as #00000000, or flatten it"
            )
        return self._resolved(self._lookup.colours(pixels), pixels)

    def _either(self, label: LabelFile) -> Index:
        """Read with a table of values and colours: gray as values, RGB as colours. For a palette both must agree."""
        pixels = label.pixels(as_index=True)
        if pixels.ndim == 3:
            return self._colour(label)
        index = self._lookup.values(pixels)
        self._refuse_another_reading(label, index, "auto")
        return self._resolved(index, pixels)

    def _refuse_another_reading(self, label: LabelFile, index: Index, codec: str) -> None:
        """Refuse a palette whose indices and colours are different classes by the table."""
        colours = label.pixels(as_index=False)
        if colours.ndim == 2:  # gray has one reading
            return
        other = self._lookup.colours(colours)
        if codec == "index" and (other == UNKNOWN).any():  # colours outside the table prove nothing
            return
        differs = index != other
        if differs.any():
            row, column = np.argwhere(differs)[0]
            raise BadPair(
                f"can be read in two ways: at row {row}, column {column} the palette's index and its colour "
                f"{stray_name(colours[row, column])} are different classes by the table; "
                "use --label-codec colour, or --label-codec index with a class table without colours"
            )

    def _binary(self, label: LabelFile) -> Index:
        numbers = self._grays(label)
        index = self._lookup.values(numbers)
        if self._rules.threshold is not None:
            return np.where(index == IGNORE, index, np.asarray(numbers >= self._rules.threshold, np.uint16))
        if (index == UNKNOWN).any() and self._rules.unknown == "error":
            strays = describe_strays(numbers, index == UNKNOWN)
            raise BadPair(f"is not binary, it has {strays}; to split gray edges, use --threshold 128")
        return self._resolved(index, numbers)

    def _ade20k(self, label: LabelFile) -> Index:
        pixels = label.pixels(as_index=False)
        if pixels.ndim == 2 or pixels.shape[2] != 3:
            raise BadPair("is not RGB, but full annotations of ADE20K are")
        numbers = pixels[..., 0].astype(np.uint16) // 10 * 256 + pixels[..., 1]
        return self._resolved(self._lookup.values(numbers), numbers)

    def _instance(self, label: LabelFile) -> Index:
        """Read class ids. Cityscapes has id * 1000 + n, or an id below 1000; KITTI and Mapillary have id * 256 + n."""
        ids = _numbers(label.pixels(as_index=True)).astype(np.uint16)  # the divisor does not fit into 8 bits
        divisor = self._rules.divisor
        numbers = np.where(ids < divisor, ids, ids // divisor) if divisor == DIVISORS[0] else ids // divisor
        return self._resolved(self._lookup.values(numbers), numbers)

    def _grays(self, label: LabelFile) -> Numbers:
        """Return gray values; of a palette its grays, or its indices if it has colours and no threshold is set."""
        try:
            return _numbers(label.pixels(as_index=False))
        except BadPair:
            if self._rules.threshold is not None:  # a threshold on indices would be meaningless
                raise
            return _numbers(label.pixels(as_index=True))

    def _resolved(self, index: Index, pixels: NDArray[Any]) -> Index:
        """Treat pixels in no class as the rules demand: refuse, ignore, or nearest colour."""
        if index.max() < UNKNOWN:  # a third of the time of a search, if nothing is ignored either
            return index
        unknown = index == UNKNOWN
        if not unknown.any():
            return index
        if self._rules.unknown == "error":
            strays = describe_strays(pixels, unknown)
            raise BadPair(f"has {strays}; {advice_on_strays(pixels, self._rules.codec)}")
        if self._rules.unknown == "nearest":
            self._lookup.nearest(pixels, index)
        else:
            index[unknown] = IGNORE
        return index


def _numbers(pixels: NDArray[Any]) -> Numbers:
    """Return (H,W) numbers. RGB with equal channels counts as gray; other colours are refused."""
    if pixels.ndim == 2:
        return pixels
    if pixels.shape[2] == 3 and (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all():
        return pixels[..., 0]
    if pixels.shape[2] == 4 and (pixels[..., :3] == pixels[..., :1]).all():
        raise BadPair(f"is {TRANSPARENT_GRAY}")
    raise BadPair("has colours, but the class table has only values; add the colours of the classes")
