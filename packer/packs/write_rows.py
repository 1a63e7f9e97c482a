"""Row files: a stored row as files that other tools open: PNG where it can hold the numbers, else npy."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.bits import unpack_bits
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.kinds import BITS, CLASSES, MULTILABEL, ONEHOT, PICTURE
from readers.contract.onehot import collapse

MOST_NAME = 200
"""Longer parts of a key become shorter names with a hash: a name on disk has at most 255 bytes."""
FOLDERS = {IMAGE: "images", LABEL: "labels"}
"""The folders of fields that `packer build` knows by name; others have the name of the field."""
_PNG = ("|u1", "<u2")
COLOUR_BANDS = ("red", "green", "blue")


class RowFile(NamedTuple):
    """A file: its path below the folder of its split, and its bytes."""

    path: str
    data: bytes


def write_file(file: RowFile, folder: Path) -> str:
    """Write a file below a folder; return its path there."""
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.data)
    return file.path


def row_files(field: Field, key: str, pixels: NDArray[Any], colours: bool) -> Iterator[RowFile]:
    """Yield the files of a field of a row. With `colours`, a label has the colours of its classes, not indices."""
    name, folder = file_name(key), FOLDERS.get(field.name, field.name)
    if field.kind == MULTILABEL:
        planes = unpack_bits(pixels, len(field.classes or ())) if field.form == BITS else pixels
        for plane, seg_class in zip(planes, field.classes.classes if field.classes else (), strict=True):
            if plane.any():
                yield RowFile(f"{folder}/{file_name(seg_class.name, '')}/{name}.png", png(plane * np.uint8(255)))
        return
    image = as_image(field, pixels)
    if field.kind == CLASSES and colours:
        assert field.classes is not None
        image = field.classes.palette.lookup[image]
    if image.dtype.str in _PNG and (image.ndim == 2 or image.shape[2] == len(COLOUR_BANDS)):
        yield RowFile(f"{folder}/{name}.png", png(image))
    else:
        yield RowFile(f"{folder}/{name}.npy", _npy(image))


def as_image(field: Field, pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a stored row as (H,W), or as (H,W,B) if it has several bands. One-hot planes become indices."""
    if field.kind == CLASSES:
        return collapse(pixels, field.classes.index_dtype) if field.form == ONEHOT and field.classes else pixels
    if field.kind != PICTURE:
        return pixels
    return pixels[0] if len(pixels) == 1 else np.ascontiguousarray(np.moveaxis(pixels, 0, -1))


def file_name(key: str, within: str = "/") -> str:
    """Return a relative path for a key, one that leads nowhere else. Most keys are their own names."""
    return "/".join(map(_part, key.split("/") if within else [key]))


def _part(part: str) -> str:
    """Return a name for a part of a key. Two parts that differ have different names."""
    name = part.replace("%", "%25").replace("/", "%2F")
    if name.startswith(".") or not name:  # hidden files, the folder itself, the one above, no name
        name = "%2E" + name[1:] if name else "%"
    if len(name.encode()) > MOST_NAME:
        start = name.encode()[: MOST_NAME - 50].decode(errors="ignore")
        name = f"{start}%~{hashlib.blake2b(part.encode(), digest_size=16).hexdigest()}"
    return name


def class_lines(field: Field) -> str:
    """Return a class table as CSV, whose values are the numbers of the label files."""
    assert field.classes is not None
    palette = field.classes.palette
    drawn = palette.hex if len(set(palette)) == len(palette) else [""] * len(palette)  # no colour may be two classes
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["value", "name", "colour"] if any(drawn) else ["value", "name"])
    for index, (name, colour) in enumerate(zip(field.classes.names, drawn, strict=True)):
        table.writerow([index, name, colour] if colour else [index, name])
    return text.getvalue()


def png(image: NDArray[Any]) -> bytes:
    """Return a PNG. OpenCV has blue first."""
    encoded, data = cv2.imencode(".png", image if image.ndim == 2 else np.ascontiguousarray(image[:, :, ::-1]))
    assert encoded, "an array of 8 or 16 bits with one or three bands is a PNG"
    return bytes(data)


def _npy(image: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(image), (1, 0), allow_pickle=False)
    return file.getvalue()
