"""From a pair of raw files to one stored row, or a plain word why not."""

from __future__ import annotations

import hashlib
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.labels import LabelCodec
from packer.pairing import Pair
from packer.pictures.decode import check_image, check_label, decode_image
from packer.pictures.header import Header
from packer.pictures.kinds import read_header
from packer.pictures.rules import ImageRules
from packer.recipe import Recipe
from readers.contract.manifest import Pixels
from readers.contract.onehot import expand
from readers.contract.receipt import Source

NO_PIXELS = Pixels((), 0)


@dataclass(frozen=True)
class Row:
    """What packing one pair gave besides its pixels; `reject` is why it is not packed."""

    source: Source
    crc32: int = 0
    pixels: Pixels = NO_PIXELS
    reject: str | None = None


class RowMaker:
    """Turns pairs into rows by one recipe; many threads may use one."""

    def __init__(self, recipe: Recipe, raw: Path) -> None:
        self._recipe = recipe
        self._raw = raw
        self._codec = _codec(recipe)
        self._scaled: NDArray[Any] | None = None
        if recipe.image_dtype != "uint8":
            self._scaled = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(recipe.image_dtype)

    def fill(self, pair: Pair, image: NDArray[Any], label: NDArray[Any]) -> Row:
        """Pack a pair into its row of the arrays. The digests are of the very bytes that were decoded."""
        digests: list[str] = []
        try:
            image_data, label_data = self._load(pair.image, digests), self._load(pair.label, digests)
            pixels = self._pack(pair, image_data, label_data, image, label)
        except BadPair as bad:
            return Row(Source(pair.key, *(*digests, "", "")[:2]), reject=str(bad))
        return Row(Source(pair.key, *digests), zlib.crc32(label.data, zlib.crc32(image.data)), pixels)

    def _as_stored(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Pixels in the stored type; what is scaled to 0..1 already may have been resized beyond it."""
        if planes.dtype == np.uint8:
            return planes if self._scaled is None else self._scaled[planes]
        planes = np.clip(planes, 0, 1)
        return np.rint(planes * 255).astype(np.uint8) if self._scaled is None else planes

    def _load(self, path: str, digests: list[str]) -> bytes:
        with _naming(path), open_picture(self._raw / path) as file:
            data = file.read()
        digests.append(hashlib.sha256(data).hexdigest())
        return data

    def _pack(
        self, pair: Pair, image_data: bytes, label_data: bytes, image: NDArray[Any], label: NDArray[Any]
    ) -> Pixels:
        with _naming(pair.image):
            colours = decode_image(image_data, self._recipe.rules)
        with _naming(pair.label):
            index = self._codec.decode(label_data)
        _check_sizes(pair, colours.shape[:2], index.shape)
        geometry, classes = self._recipe.geometry, self._recipe.classes
        np.copyto(image, self._as_stored(geometry.image(colours).transpose(2, 0, 1)))
        stored = geometry.label(index).astype(classes.index_dtype)
        if self._recipe.labels == "onehot":
            expand(stored, len(classes), out=label)
        else:
            np.copyto(label, stored)
        counts = np.bincount(stored.reshape(-1), minlength=len(classes))[: len(classes)].tolist()
        return Pixels(tuple(counts), stored.size - sum(counts))


def check_pair(pair: Pair, raw: Path, rules: ImageRules) -> tuple[int, int]:
    """Judge a pair by its headers alone: its upright (height, width), or BadPair. A shard will judge no better."""
    image, label = _header(pair.image, raw, rules), _header(pair.label, raw, rules)
    with _naming(pair.image):
        check_image(image, rules)
    with _naming(pair.label):
        check_label(label)
    _check_sizes(pair, image.size, label.size)
    return image.size


def _header(path: str, raw: Path, rules: ImageRules) -> Header:
    with _naming(path), open_picture(raw / path) as file:
        return read_header(file, rules.max_pixels)


def open_picture(path: Path) -> BinaryIO:
    """Open a regular file; opening a pipe would wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadPair("is not a regular file")
    return path.open("rb")


def _check_sizes(pair: Pair, image: tuple[int, ...], label: tuple[int, ...]) -> None:
    """An image and its label have one size; scaling one to the other would move the labels."""
    if image != label:
        raise BadPair(
            f"{pair.image} is {image[0]}x{image[1]}, its label {pair.label} is {label[0]}x{label[1]} "
            "(height x width); they must be the same size"
        )


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Put a file's name before the reason why it is bad."""
    try:
        yield
    except BadPair as bad:
        raise BadPair(f"{path}: {bad}") from None
    except OSError as error:
        raise BadPair(f"{path}: cannot be read ({error.strerror})") from error


@lru_cache(maxsize=1)
def _codec(recipe: Recipe) -> LabelCodec:
    """Its tables take longer to fill than a picture to decode, so a process keeps them from shard to shard."""
    return LabelCodec(recipe.classes, recipe.unknown == "error", recipe.rules.max_pixels)
