"""`FolderLayout`: the files of a row in the folder of a trainer, and the files that name all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as made_by
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import UsageError
from packer.packs.write_rows import COLOUR_BANDS, RowFile, as_image, file_name
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.kinds import CLASSES, IDS, PICTURE
from readers.contract.manifest import ALL
from readers.contract.place import Place

JPEG_QUALITY = 100
TEST = "test"
"""The split whose rows no layout offers to train with."""


@dataclass(frozen=True)
class RowOfPack:
    """A row of a pack, with its stored numbers by the names of the fields that it has."""

    split: str
    key: str
    number: int
    """Its number among the rows that are written, from 0 on."""
    fields: Mapping[str, NDArray[Any]]
    place: Place | None

    @property
    def name(self) -> str:
        """The key as a relative path."""
        return file_name(self.key)

    @property
    def flat_name(self) -> str:
        """The key as the name of a file."""
        return file_name(self.key, "")


@dataclass(frozen=True)
class LaidOut:
    """The files of a row, and the lines that it adds to lists, by the path of each list."""

    files: tuple[RowFile, ...]
    lines: Mapping[str, tuple[str, ...]] = made_by(default_factory=dict)


@dataclass(frozen=True)
class Roles:
    """The fields of a pack that a layout writes."""

    image: Field
    label: Field | None
    """The classes of pixels."""
    ids: Field | None
    """The objects of pixels."""

    @classmethod
    def of(cls, fields: Iterable[Field]) -> Roles:
        """Choose the fields: the ones named image and label, or else the first of their kinds."""
        named = {field.name: field for field in fields}
        pictures = [field for field in named.values() if field.kind == PICTURE]
        classes = [field for field in named.values() if field.kind == CLASSES]
        image = named.get(IMAGE, pictures[0] if pictures else None)
        label = named.get(LABEL, classes[0] if classes else None)
        if image is None or image.kind != PICTURE:
            raise UsageError("a layout has pictures, and this pack has none")
        if label is not None and label.kind != CLASSES:
            label = classes[0] if classes else None
        return cls(image, label, next((field for field in named.values() if field.kind == IDS), None))

    @property
    def classes(self) -> ClassTable:
        """The classes of the label."""
        if self.label is None or self.label.classes is None:
            raise UsageError("this layout has the class of each pixel, and this pack has no such label")
        return self.label.classes

    def picture(self, row: RowOfPack) -> NDArray[np.uint8]:
        """Return the picture of a row as (H,W) or (H,W,3) bytes."""
        return as_image(self.image, row.fields[self.image.name])

    def numbers(self, row: RowOfPack) -> NDArray[Any] | None:
        """Return the class of each pixel of a row; None if it has no label."""
        if self.label is None or self.label.name not in row.fields:
            return None
        return as_image(self.label, row.fields[self.label.name])

    def check_pictures(self, layout: str) -> None:
        """Refuse what the pictures of a layout cannot hold."""
        image = self.image
        if image.is_volume or image.times > 1 or image.dtype != "|u1" or image.bands not in (COLOUR_BANDS, ("gray",)):
            bands = ", ".join(image.bands or ())
            raise UsageError(
                f"--layout {layout}: has pictures of 8 bits, gray or in colour, and {image.name} has {image.dtype} "
                f"{bands}; packer extract without --layout writes them unchanged"
            )


class FolderLayout(Protocol):
    """The folder of a trainer. Threads share it."""

    def row(self, row: RowOfPack) -> LaidOut:
        """Return the files of a row."""
        ...

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        """Yield the files for all rows, when all rows and lists are in the folder. `splits` counts rows."""
        ...


def split_name(split: str) -> str:
    """Return the name of a split: all rows of a pack without splits are to train with."""
    return "train" if split == ALL else split


def jpeg(image: NDArray[Any]) -> bytes:
    """Return a JPEG of the best quality, with all of its colours: its pixels are 1 or 2 off."""
    factor = int(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444)
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor]
    turned = image if image.ndim == 2 else np.ascontiguousarray(image[:, :, ::-1])
    encoded, data = cv2.imencode(".jpg", turned, list(map(int, options)))
    assert encoded, "an array of 8 bits with one or three bands is a JPEG"
    return bytes(data)
