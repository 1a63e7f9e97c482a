"""Turn a pair of raw files into a stored row, or find the reason why it is bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.decoding.decode import check_same_size, decode_image, header_of
from packer.decoding.raw_file import naming
from packer.decoding.rules import FAST
from packer.errors import BadPair
from packer.pixels.class_picture import ClassPicture, from_indices
from packer.pixels.image_hash import image_hash
from packer.pixels.label_codec import LabelCodec
from packer.pixels.stored_label import store
from packer.recipe.piece import Piece
from packer.recipe.recipe import Recipe
from packer.recipe.source import ClassIndices, Data, Source
from packer.shards.row_sums import row_pixels
from readers.contract.onehot import expand
from readers.contract.pixel_sums import Pixels
from readers.contract.receipt import RowInput

NO_PIXELS = Pixels.none(0)
NOTHING = RowInput("", "", "")


@dataclass(frozen=True)
class Row:
    """The result of packing a pair, without its pixels. `reject` is the reason why it is not packed."""

    source: RowInput
    crc32: int = 0
    look: str = ""
    pixels: Pixels = NO_PIXELS
    reject: str | None = None
    state: Sequence[int] | NDArray[np.int64] = ()
    """The state of the row just before it was read."""
    size: tuple[int, int] = (0, 0)
    """The height and width of the upright picture, if it is good."""


@dataclass(frozen=True)
class RowTarget:
    """The views of a shard's arrays that the row of a piece is written to."""

    piece: Piece
    image: NDArray[Any]
    label: NDArray[Any]


class RowMaker:
    """Turns pieces into rows by one recipe. Threads may share it."""

    def __init__(self, recipe: Recipe, source: Source) -> None:
        self._recipe = recipe
        self._source = source
        self._codec = _codec(recipe)
        self._scaled: NDArray[Any] | None = None
        if recipe.image_dtype != "uint8":
            self._scaled = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(recipe.image_dtype)

    def fill(self, targets: Sequence[RowTarget]) -> list[Row]:
        """Pack the pieces of one row of the source. The identities are those of the bytes that were decoded."""
        first = targets[0].piece
        state = self._source.states([first.ref])[0]
        loaded = self._source.load(first.ref)
        inputs = [RowInput(target.piece.key, *loaded.identities) for target in targets]
        try:
            if loaded.bad is not None:
                raise BadPair(loaded.bad)
            image, label = self._decode(first, *loaded.data)
            packed = [self._pack(target, image, label) for target in targets]  # all or none
        except BadPair as bad:
            return [Row(source, reject=str(bad), state=state) for source in inputs]
        size = (label.shape[0], label.shape[1])
        return [replace(row, source=source, state=state, size=size) for source, row in zip(inputs, packed, strict=True)]

    def _put(self, image: NDArray[Any], source: tuple[int, int], target: RowTarget) -> NDArray[Any]:
        """Store an image in its planes. Return the planes as bytes if it was decoded to these, else from 0 to 1."""
        direct = image.dtype == target.image.dtype == np.uint8
        planes = self._recipe.geometry.image(image, target.piece.origin, target.image if direct else None, source)
        if not direct:
            np.copyto(target.image, self._as_stored(planes))
        return planes

    def _as_stored(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Convert pixels to the stored type. Resizing may have moved those of 0..1 out of this range."""
        if planes.dtype == np.uint8:
            return planes if self._scaled is None else self._scaled[planes]
        planes = np.clip(planes, 0, 1)
        return np.rint(planes * 255).astype(np.uint8) if self._scaled is None else planes

    def _decode(self, piece: Piece, image_data: Any, label_data: Any) -> tuple[NDArray[Any], ClassPicture]:
        if isinstance(label_data, ClassIndices):
            with naming(f"{piece.ref.split}/{piece.ref.key}"):
                return image_data, from_indices(label_data.numbers, len(self._recipe.classes))
        image_path, label_path = piece.ref.parts
        with naming(image_path):
            image, size = self._decode_image(image_data)
        with naming(label_path):
            label = self._codec.read(label_data)
        check_same_size(image_path, size, label_path, label.shape)
        if self._recipe.geometry.depends_on_source and size != piece.size:
            raise BadPair(f"{image_path}: was another picture when the build was planned; build again")
        return image, label

    def _decode_image(self, data: Data) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the pixels of an image, which may be fewer than those of the picture, and the size of the picture."""
        rules = self._recipe.image_rules
        if rules.decode == FAST:
            size = header_of(data, rules.max_pixels).size
            return decode_image(data, rules, self._recipe.geometry.reduction(size)), size
        image = decode_image(data, rules)
        return image, image.shape[:2]

    def _pack(self, target: RowTarget, image: NDArray[Any], label: ClassPicture) -> Row:
        geometry, classes = self._recipe.geometry, self._recipe.classes
        planes = self._put(image, label.shape, target)
        is_onehot = self._recipe.labels == "onehot"
        index = np.empty(target.label.shape[1:], classes.index_dtype) if is_onehot else target.label
        counts = store(label, geometry, target.piece.origin, len(classes), index)
        if is_onehot:
            expand(index, len(classes), out=target.label)
        crc = crc32(target.image.data)
        return Row(
            NOTHING,
            crc32(target.label.data, crc),
            image_hash(crc, planes),
            row_pixels(target.image, counts, index.size - sum(counts)),
        )


@lru_cache(maxsize=1)
def _codec(recipe: Recipe) -> LabelCodec:
    """Return the codec, kept from shard to shard: its tables take longer to fill than a picture to decode."""
    return LabelCodec(recipe.classes, recipe.label_rules, recipe.image_rules.max_pixels)
