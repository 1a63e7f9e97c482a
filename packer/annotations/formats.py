"""The formats of annotations by their names, and the one that knows a file."""

from __future__ import annotations

from importlib import import_module

from packer.annotations.picture_format import AnnotationFormat, PictureFormat

OF_ONE_PICTURE = (
    *("labelme", "cityscapes", "mapillary", "ade20k_parts", "labelme_web", "voc", "geojson"),
    *("supervisely", "yolo"),
)
"""Formats of a file for each picture, each a module of this folder. The first one that knows a file reads it."""
OF_MANY_PICTURES = ("coco", "panoptic", "cvat", "label_studio")
"""Formats of a file for many pictures: the name of its file is followed by the name of a picture."""


def annotation_format(name: str) -> AnnotationFormat:
    """Return the format with this name, which a plan may have from elsewhere. Its libraries are imported now."""
    if name not in OF_ONE_PICTURE + OF_MANY_PICTURES:
        raise ValueError(f"{name!r} is not a format of annotations")
    imported: AnnotationFormat = import_module(f"packer.annotations.{name}").FORMAT
    return imported


def picture_format(name: str) -> PictureFormat:
    """Return the format of a file for each picture with this name."""
    chosen = annotation_format(name)
    if not isinstance(chosen, PictureFormat):
        raise ValueError(f"{name} is not a format of a file for each picture")
    return chosen


def format_of(data: bytes) -> PictureFormat | None:
    """Return the format that knows a file; None if none does."""
    return next((candidate for candidate in map(picture_format, OF_ONE_PICTURE) if candidate.knows(data)), None)


def is_embedded(path: str) -> bool:
    """Return whether an image is within a file of annotations."""
    return path.lower().endswith(".json")
