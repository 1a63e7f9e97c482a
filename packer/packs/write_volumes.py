"""Volume files: a stored volume as NIfTI files with its place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.packs.write_rows import FOLDERS, RowFile, file_name
from readers.contract.bits import unpack_bits
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.kinds import BITS, CLASSES, MULTILABEL, ONEHOT, PICTURE
from readers.contract.onehot import collapse
from readers.contract.place import NIFTI, Place
from readers.predictions import nifti

SUFFIX = ".nii.gz"
DATA_SET_FILE, IGNORE = "dataset.json", "ignore"
"""The names by which nnU-Net, and a source of volumes, know the file and the label that is not trained."""


def volume_files(field: Field, key: str, numbers: NDArray[Any], place: Place | None) -> Iterator[RowFile]:
    """Yield the files of a field of a volume: one, or one for each of overlapping classes that occurs."""
    folder, name = FOLDERS.get(field.name, field.name), file_name(key) + SUFFIX
    if field.kind == MULTILABEL:
        table = field.classes.classes if field.classes is not None else ()
        planes = unpack_bits(numbers, len(table)) if field.form == BITS else numbers
        for plane, segclass in zip(planes, table, strict=True):
            if plane.any():
                yield RowFile(f"{folder}/{file_name(segclass.name, '')}/{name}", packed(plane, place))
        return
    yield RowFile(f"{folder}/{name}", packed(as_volume(field, numbers), place))


def as_volume(field: Field, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return a stored volume as (D,H,W), or as (B,D,H,W) if it has several bands. One-hot planes become indices."""
    if field.kind == CLASSES and field.form == ONEHOT and field.classes is not None:
        index: NDArray[Any] = collapse(numbers, field.classes.index_dtype)
        return index
    if field.kind == PICTURE and len(numbers) == 1:
        numbers = numbers[0]
    return numbers


def packed(numbers: NDArray[Any], place: Place | None) -> bytes:
    """Return the NIfTI file of a volume, compressed. NIfTI has no numbers of 16 bits with a point: they get 32."""
    numbers = numbers.astype("<f4") if numbers.dtype == np.float16 else np.ascontiguousarray(numbers)
    where = place if place is not None and place.kind == NIFTI else None
    bands = len(numbers) if numbers.ndim == 4 else None
    head = nifti.header(numbers.shape[-3:], bands, numbers.dtype, where)
    return b"".join(nifti.packed([head, numbers.tobytes()]))


def data_set_text(fields: Iterable[Field]) -> RowFile:
    """Return the dataset.json that names the channels and the classes, as nnU-Net writes it."""
    by_name = {field.name: field for field in fields}
    document: dict[str, Any] = {"file_ending": SUFFIX}
    if IMAGE in by_name:
        document["channel_names"] = {str(number): name for number, name in enumerate(by_name[IMAGE].bands or ())}
    table = by_name[LABEL].classes if LABEL in by_name else None
    if table is not None:
        document["labels"] = {**{name: index for index, name in enumerate(table.names)}, IGNORE: table.ignore_index}
    return RowFile(DATA_SET_FILE, (json.dumps(document, indent=1) + "\n").encode())
