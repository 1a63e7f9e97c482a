"""Open pictures with a class for each pixel, and perhaps numbers of objects, for trainers of other libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from readers.by_format import open_dataset
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.contract.kinds import CLASSES, IDS, PICTURE
from readers.contract.manifest import Manifest
from readers.dataset import SegDataset

IGNORED = 255
"""The number of ignored pixels that other libraries expect."""


def open_pictures(
    root: str | os.PathLike[str], split: str | None, fields: Sequence[str] = (IMAGE, LABEL), **options: Any
) -> SegDataset:
    """Open the labelled rows of a split, labels as class numbers. `options` go to `open_dataset`.

    A pack without labels, of volumes, of pictures that are not bytes, or of more than 255 classes is refused.
    """
    form = {**(options.pop("form", None) or {}), **({LABEL: "index"} if LABEL in fields else {})}
    every = open_dataset(root, split=split, fields=None, **options)
    check_pictures(os.fspath(root), every.manifest)
    return open_dataset(root, split=split, fields=fields, form=form, **{**options, "labelled": True})


def check_pictures(root: str, manifest: Manifest) -> None:
    """Refuse a pack that has no bytes of pictures, or no label with one class for each pixel."""
    fields = {field.name: field for field in manifest.fields}
    image, label = fields.get(IMAGE), fields.get(LABEL)
    if image is None or image.kind != PICTURE or image.is_volume:
        raise RequestError(f"{root}: pictures are needed, and its rows have {_kinds(manifest)}; use readers itself")
    if image.dtype != "|u1":
        raise RequestError(
            f"{root}: the pictures must be bytes, and these are {image.dtype}: build the pack again from pictures of 8 "
            "bits"
        )
    if label is None or label.kind != CLASSES:
        raise RequestError(
            f"{root}: a label with one class for each pixel is needed, and its rows have {_kinds(manifest)}: build the "
            "pack with --label or --annotations"
        )
    if manifest.classes.ignore_index != IGNORED:
        raise RequestError(
            f"{root}: {len(manifest.classes)} classes, and with {IGNORED} as the ignored number 255 are the most: "
            "build it with fewer classes"
        )


def ids_field(root: str, manifest: Manifest, name: str | None = None) -> str:
    """Return the name of the field that has the number of an object for each pixel."""
    names = [field.name for field in manifest.fields if field.kind == IDS]
    if name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    if not names:
        raise RequestError(
            f"{root}: numbers of objects are needed, and its rows have {_kinds(manifest)}: build the pack with "
            "--field instance=ids"
        )
    raise RequestError(f"{root}: which objects? ids= one of {', '.join(map(repr, names))}, not {name!r}")


def _kinds(manifest: Manifest) -> str:
    return ", ".join(f"{field.name} ({field.kind}{' of volumes' * field.is_volume})" for field in manifest.fields)
