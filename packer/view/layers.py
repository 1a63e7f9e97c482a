"""Rows of a pack as a browser draws them: thumbnails, pictures, and labels as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from simplejpeg import encode_jpeg

from packer.errors import UsageError
from packer.packs.raw_rows import differing
from readers.contract.bits import pack_bits
from readers.contract.fields import READABLE, Field
from readers.contract.kinds import BITS, CLASSES, IDS, MULTILABEL, ONEHOT, PICTURE
from readers.contract.onehot import collapse
from readers.contract.slices import Cut
from readers.formats.large_rows import has_large_picture, picture
from readers.pack import Pack
from readers.pictures.draw import Look, Picture, draw
from readers.pictures.shrink import fitted
from readers.pictures.window import ShownPart, window_of
from readers.row_pictures import RowPictures, Style

LONGEST = 192
FAINTEST = 64
"""The least brightness of a pixel that differs."""
QUALITY = 80
_LEVEL = [cv2.IMWRITE_PNG_COMPRESSION, 1]


@dataclass(frozen=True)
class Layer:
    """A field of a row as numbers of 8, 16 or 32 bits in planes, and the numbers that the smallest and largest mean."""

    planes: NDArray[Any]
    window: tuple[float, float] | None = None
    range: tuple[float, float] | None = None


class Layers:
    """Draws rows of one generation. `fields` are those that can be drawn, by name."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.digest = pack.manifest.identity[:16]
        self.fields = {field.name: field for field in pack.fields if field.encoding in READABLE}
        self.pictures = RowPictures(pack, Style())
        self._styles = {
            (blind, opacity): RowPictures(pack, Style(opacity=opacity, colour_blind=blind))
            for blind in (False, True)
            for opacity in (None, 0.0, 1.0)
        }

    def thumbnail(self, row: int, blind: bool, opacity: float | None) -> bytes:
        """Return a JPEG with the label over the picture, shrunk from the map."""
        pictures = self._styles[blind, opacity]
        size = fitted(pictures.size(row), (LONGEST, LONGEST))
        return bytes(encode_jpeg(np.ascontiguousarray(pictures.at(row, size)), QUALITY))

    def size(self, row: int) -> tuple[int, ...]:
        """Return the sides of a row."""
        shard, inside = self.pack.table.locate(row)
        return self.pack.shard(shard).size(inside)

    def has(self, row: int, field: Field) -> bool:
        """Return whether the row has the field."""
        return field in self.pack.fields_of(self.pack.table.locate(row)[0])

    def pixels(self, row: int, field: Field, cut: Cut | None = None) -> NDArray[Any]:
        """Return a field of a row in memory of its own; of a volume a plane, the middle slice if none is named."""
        shard, inside = self.pack.table.locate(row)
        if not self.has(row, field):
            raise UsageError("this row does not have this field")
        opened = self.pack.shard(shard)
        if has_large_picture(opened, field, inside, cut):
            raise UsageError(f"{field.name} of this row is too large to be shown whole; its thumbnail shows it reduced")
        return picture(opened, field, inside, cut).copy()


def drawn(field: Field, pixels: NDArray[Any], window: tuple[float, float] | None = None) -> Picture:
    """Return a field of a row in its own size and colours."""
    return draw(field, pixels, Look(window=None if window is None else ShownPart(*window))).rgb


def windows(field: Field, pixels: NDArray[Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the numbers that are drawn darkest and brightest, and the smallest and largest of the row."""
    return _window(field, pixels), _range(pixels)


def layer_of(field: Field, pixels: NDArray[Any]) -> Layer:
    """Return a label, objects or measured values as numbers: class indices, bits of classes, ids, or steps."""
    if field.kind == CLASSES and field.classes is not None:
        index = collapse(pixels, field.classes.index_dtype) if field.form == ONEHOT else pixels
        return Layer(index[None])
    if field.kind == MULTILABEL:
        return Layer(pixels if field.form == BITS else pack_bits(pixels))
    if field.kind == IDS:
        return Layer(pixels[None])
    if field.kind == PICTURE:
        raise UsageError("this field is a picture")
    return _steps(field, pixels)


def difference(field: Field, ours: NDArray[Any], other: NDArray[Any]) -> tuple[bytes, int]:
    """Return the pixels of two rows of one size whose numbers differ, on black, as a PNG, and how many they are."""
    apart = np.abs(drawn(field, ours).astype(np.int16) - drawn(field, other)).astype(np.uint8)
    differ = differing(field, ours, other)
    apart[~differ] = 0  # a window of the row's own numbers may draw equal numbers differently
    apart[differ] = np.maximum(apart[differ], FAINTEST)
    return png(apart), int(differ.sum())


def _steps(field: Field, pixels: NDArray[Any]) -> Layer:
    """Return measured values as 65,535 steps from the smallest to the largest. 0 is a pixel without a value."""
    values = pixels.astype(np.float64)
    missing = ~np.isfinite(values) | (pixels == np.array(field.fill_number, pixels.dtype))
    low, high = _range(values[~missing])
    steps = np.zeros(values.shape, np.uint16)
    steps[~missing] = np.round((values[~missing] - low) / ((high - low) or 1) * 65534).astype(np.uint16) + 1
    return Layer(steps[None], _window(field, pixels), (low, high))


def _window(field: Field, pixels: NDArray[Any]) -> tuple[float, float]:
    window = window_of(field, pixels)
    return window.low, window.high


def _range(numbers: NDArray[Any]) -> tuple[float, float]:
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def png(picture: Picture) -> bytes:
    """Return a picture as a PNG."""
    is_encoded, data = cv2.imencode(".png", picture[:, :, ::-1], _LEVEL)
    assert is_encoded, "an array of 8 bits with three bands is a PNG"
    return bytes(data)
