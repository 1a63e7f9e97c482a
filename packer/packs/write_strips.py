"""Write a field of a row as GeoTIFF or NIfTI with its place, strip by strip: for maps, and rows larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.packs.write_rows import FOLDERS, file_name
from readers.contract.bits import unpack_bits
from readers.contract.fields import RGB, Field
from readers.contract.kinds import BITS, CLASSES, ONEHOT, PICTURE
from readers.contract.onehot import collapse
from readers.contract.place import Place
from readers.formats.large_rows import is_large, strips
from readers.formats.shard import Shard
from readers.predictions.write import PredictionFile


def write_strips(shard: Shard, field: Field, row: int, folder: Path, place: Place | None) -> str:
    """Write a field of a row of a shard below `folder`; return its path there."""
    size, suffix = shard.size(row), ".nii.gz" if field.is_volume else ".tif"
    path = f"{FOLDERS.get(field.name, field.name)}/{file_name(shard.key(row))}{suffix}"
    lines = _lines(shard, field, row)
    start, first = next(lines)
    bands = None if first.ndim == len(size) else len(first)
    table = field.classes if field.kind == CLASSES and first.dtype == np.uint8 else None
    no_data = field.fill_number if field.no_data and not field.is_volume else None
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    rgb = field.bands == RGB and not field.is_volume
    with PredictionFile(
        folder / path, size, first.dtype, place, bands=bands, classes=table, nodata=no_data, rgb=rgb
    ) as file:
        file.write(first, start)
        for at, numbers in lines:
            file.write(numbers, at)
    return path


def _lines(shard: Shard, field: Field, row: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield where strips of a row begin, and their numbers: all of the row at once if it fits into memory."""
    if not is_large(shard, field, row):
        yield 0, _in_file(field, shard.row(field, row))
        return
    for strip, numbers in strips(shard, field, row):
        yield strip.start, _in_file(field, numbers)


def _in_file(field: Field, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers without planes where one number says all; NIfTI has none of 16 bits with a point."""
    if field.kind == CLASSES and field.form == ONEHOT and field.classes is not None:
        return np.asarray(collapse(numbers, field.classes.index_dtype))
    if field.form == BITS:
        return unpack_bits(numbers, len(field.classes or ()))
    if field.is_volume and numbers.dtype == np.float16:
        numbers = numbers.astype(np.float32)
    return numbers[0] if field.kind == PICTURE and len(numbers) == 1 else numbers
