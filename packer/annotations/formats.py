"""The formats of annotations by their names, and the one that knows a file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from packer.annotations.annotation import AnnotatedPicture
from packer.errors import BadPair

OF_ONE_PICTURE = (
    *("labelme", "cityscapes", "mapillary", "ade20k_parts", "labelme_web", "voc", "geojson"),
    *("supervisely", "yolo"),
)
"""Formats of a file for each picture, each a module of this folder. The first one that knows a file reads it."""
OF_MANY_PICTURES = ("coco", "panoptic", "cvat", "label_studio")
"""Formats of a file for many pictures: the name of its file is followed by that of a picture."""


class PictureFormat(Protocol):
    """A module that reads the files of one tool. It may have more names: see `categories_of` and `is_of_stored`."""

    NAME: str
    RULE: str
    """The words of the recipe. They change when the pixels do."""

    def knows(self, data: bytes) -> bool:
        """Return whether a whole file is of this format. Never raises."""

    def read(self, data: bytes, names: Sequence[str]) -> AnnotatedPicture:
        """Return the objects of a picture. Raise BadPair if the file is not one. `names` is the list of categories."""


def picture_format(name: str) -> PictureFormat:
    """Return the format with this name, which a plan may have from elsewhere. Its libraries are imported now."""
    if name not in OF_ONE_PICTURE + OF_MANY_PICTURES:
        raise ValueError(f"{name!r} is not a format of annotations")
    return cast("PictureFormat", import_module(f"packer.annotations.{name}"))


def format_of(data: bytes) -> PictureFormat | None:
    """Return the format that knows a file; None if none does."""
    return next((found for name in OF_ONE_PICTURE if (found := picture_format(name)).knows(data)), None)


def categories_of(found: PictureFormat) -> tuple[str, ...]:
    """Return the categories that every data set of the format has, in their order: its `CATEGORIES`."""
    return tuple(getattr(found, "CATEGORIES", ()))


def lists_of(found: PictureFormat) -> tuple[str, ...]:
    """Return the names of files that list the categories, `LISTS` of the format, such as data.yaml."""
    return tuple(getattr(found, "LISTS", ()))


def other_lists(found: PictureFormat) -> tuple[str, ...]:
    """Return the suffixes of other files that may list the categories, `OTHER_LISTS` of the format."""
    return tuple(getattr(found, "OTHER_LISTS", ()))


def has_names(found: PictureFormat, data: bytes) -> bool:
    """Return whether a file with such a suffix lists categories: `has_names` of the format."""
    return bool(getattr(found, "has_names")(data))  # noqa: B009 - as few have it


def names_of(found: PictureFormat, data: bytes) -> tuple[str, ...]:
    """Return the categories of such a list, in their order: `names_of` of the format."""
    return tuple(getattr(found, "names_of")(data))  # noqa: B009 - few formats have it


def placed(found: PictureFormat, picture: AnnotatedPicture, image: bytes) -> AnnotatedPicture:
    """Return the objects in pixels. `place` of a format whose coordinates are on the ground needs the picture."""
    mapping = getattr(found, "place", None)
    return picture if mapping is None else cast("AnnotatedPicture", mapping(picture, image))


def is_embedded(path: str) -> bool:
    """Return whether an image is within a file of annotations."""
    return path.lower().endswith(".json")


def embedded_picture(found: PictureFormat, data: bytes) -> bytes:
    """Return the bytes of the picture within a file of annotations: `embedded` of the format."""
    reader = getattr(found, "embedded", None)
    if reader is None:
        raise BadPair(f"is not a picture, and files of {found.NAME} have none within them")
    return cast("bytes", reader(data))


def is_of_stored(found: PictureFormat) -> bool:
    """Return whether coordinates are of the stored picture, `OF_STORED`, if its size does not show it."""
    return bool(getattr(found, "OF_STORED", False))
