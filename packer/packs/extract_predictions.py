"""Extract predictions: an array for each row becomes a file for each picture, at its place in the world."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError, UsageError, counted, first_of
from packer.packs.new_folder import new_folder
from packer.packs.write_rows import file_name
from packer.progress import Progress, no_progress
from readers.band import Stripe, Weight
from readers.contract.classes import ClassTable
from readers.contract.fields import LABEL
from readers.contract.kinds import CLASSES
from readers.contract.manifest import ALL, Split
from readers.contract.place import NIFTI, Place
from readers.contract.tiles import Size, picture_of, size_text
from readers.pack import Pack
from readers.predictions.write import PredictionFile
from readers.stripes import stitch_stripes

ARRAY = ".npy"
MOST_PNG = 1 << 28
"""The most pixels of a PNG; larger pictures become TIFF, which is written in parts."""
MOST_IN_BYTES = 255
"""The most classes whose numbers fit into bytes, next to the number of ignored pixels."""


@dataclass(frozen=True)
class ExtractedPredictions:
    """The pictures and rows that were written, and the pictures without predictions."""

    pictures: int
    rows: int
    left_out: int
    bytes: int


@dataclass(frozen=True)
class Stitching:
    """The way in which the predictions of tiles become one picture: the weight of tiles that overlap; the number of
    pixels in no tile, None if every tile must exist; whether scores become the class with the highest score."""

    weight: Weight = "clip"
    fill: float | None = None
    argmax: bool = False


class _Row(NamedTuple):
    """A row of the pack, its size, and the file of its prediction."""

    number: int
    key: str
    size: Size
    file: Path

    @property
    def is_predicted(self) -> bool:
        return self.file.is_file()


class _Picture(NamedTuple):
    """A picture or volume of a split, with its rows in order: itself, its tiles, or its slices by their numbers."""

    split: str
    key: str
    rows: list[_Row]
    slices: list[int] | None = None


def extract_predictions(
    out: str | PathLike[str],
    scores: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    split: str | None = None,
    stitching: Stitching | None = None,
    progress: Progress = no_progress,
) -> ExtractedPredictions:
    """Write the predictions in `scores`, arrays whose names are keys of rows, below `folder`, which is new or empty.

    A picture gets one file, stitched from its tiles, and a volume one of its slices: `.tif` for a map, `.nii.gz` for a
    volume, else `.png`, or `.tif` for what PNG cannot hold. Pictures without any prediction are left out.
    """
    pack, scores, folder = Pack.open(Path(out)), Path(scores), Path(folder)
    stitching = stitching or Stitching()
    _check_rows(pack, scores, split, has_all=stitching.fill is None)
    pictures = rows = left_out = size = 0
    with new_folder(folder) as new, progress("extracting", len(pack.rows_of(split or ALL)), "rows") as advance:
        for picture in _pictures(pack, scores, split):
            predicted = sum(row.is_predicted for row in picture.rows)
            if predicted:
                size += _write(pack, picture, stitching, new)
            pictures, left_out = pictures + bool(predicted), left_out + (not predicted)
            rows += predicted
            advance(len(picture.rows))
    return ExtractedPredictions(pictures, rows, left_out, size)


def _pictures(pack: Pack, scores: Path, split: str | None) -> Iterator[_Picture]:
    """Yield the pictures of the rows, one after the other: tiles of a picture follow each other.

    Pictures whose tiles are in several splits, by blocks, are of no split.
    """
    splits = [(entry, rows) for entry, _, rows in pack.splits() if split in (None, ALL, entry.name)]
    every = [(_row(pack, entry, number, scores) for number in rows) for entry, rows in splits]
    if "blocks" in pack.manifest.recipe:
        yield from _grouped(pack, ALL, merge(*every, key=attrgetter("key")))
        return
    for (entry, _), of_split in zip(splits, every, strict=True):
        yield from _grouped(pack, entry.name, of_split)


def _grouped(pack: Pack, split: str, rows: Iterable[_Row]) -> Iterator[_Picture]:
    for (key, are_slices), group in groupby(rows, partial(_picture_key, pack)):
        of_picture = list(group)
        numbers = [int(row.key.rpartition("/")[2]) for row in of_picture] if are_slices else None
        yield _Picture(split, key, of_picture, numbers)


def _picture_key(pack: Pack, row: _Row) -> tuple[str, bool]:
    """Return the key of the picture that a row is of, and whether the row is a slice of a volume."""
    place, (volume, _, number) = pack.place(row.number), row.key.rpartition("/")
    is_slice = place is not None and place.kind == NIFTI and len(row.size) == 2 and volume and number.isdecimal()
    return (volume, True) if is_slice else (picture_of(row.key), False)


def _row(pack: Pack, split: Split, number: int, scores: Path) -> _Row:
    shard, inside = pack.table.locate(number)
    opened = pack.shard(shard)
    key = opened.key(inside)
    name = file_name(key) + ARRAY
    in_split = scores / split.name / name
    file = in_split if split.name != ALL and in_split.is_file() else scores / name
    return _Row(number, key, opened.size(inside), file)


def _check_rows(pack: Pack, scores: Path, split: str | None, has_all: bool) -> None:
    """Raise UsageError if there is no prediction at all, or if a picture with some lacks others."""
    has_some, lost, example = False, list[str](), ""
    pack.rows_of(split or ALL)  # names the splits if there is no such
    for picture in _pictures(pack, scores, split):
        missing = [str(row.file) for row in picture.rows if not row.is_predicted]
        missing += map(str, _lost_slices(picture))
        example = example or str(picture.rows[0].file)
        if len(missing) < len(picture.rows):
            has_some, lost = True, [*lost, *missing]
    if not has_some:
        raise UsageError(f"{scores}: has no prediction of a row of {pack.root}; expected arrays such as {example}")
    if lost and has_all:
        raise InputError(
            f"{scores}: pictures with other predictions lack {counted(len(lost), 'row')}; "
            "predict them, or state the number of their pixels with --fill",
            first_of(lost, 20),
        )


def _lost_slices(picture: _Picture) -> list[Path]:
    """Return where the predictions of the slices would be that are not in the pack."""
    numbers, first = picture.slices or [], picture.rows[0]
    digits = len(first.key.rpartition("/")[2])
    lost = sorted({*range(numbers[-1])} - {*numbers}) if numbers else []
    return [first.file.with_name(f"{number:0{digits}}{ARRAY}") for number in lost]


def _write(pack: Pack, picture: _Picture, stitching: Stitching, folder: Path) -> int:
    """Write the prediction of a picture; return the bytes of its file."""
    table = _classes(pack)
    stripes = (_in_file(stripe, stitching.argmax, table) for stripe in _stripes(picture, stitching))
    first = next(stripes)
    every, pixels, sides = chain([first], stripes), first.pixels, len(first.size)
    place = _place(pack, picture)
    is_label = pixels.ndim == sides and pixels.dtype.kind in "iu"
    path = folder / (picture.split if picture.split != ALL else "") / file_name(picture.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_label and place is None and sides == 2 and pixels.dtype.itemsize < 4 and math.prod(first.size) <= MOST_PNG:
        return _write_png(path.with_name(path.name + ".png"), every)
    is_scan = sides == 3 or (place is not None and place.kind == NIFTI)
    path = path.with_name(path.name + (".nii.gz" if is_scan else ".tif"))
    bands = None if pixels.ndim == sides else len(pixels)
    classes = table if is_label and pixels.dtype == np.uint8 else None
    ignored = None if classes is None else classes.ignore_index
    fill = stitching.fill or 0
    shape = path, first.size, pixels.dtype, place
    with PredictionFile(*shape, bands=bands, fill=fill, classes=classes, nodata=ignored) as file:
        for stripe in every:
            file.write(stripe.pixels, stripe.start)
    return path.stat().st_size


def _write_png(path: Path, stripes: Iterable[Stripe]) -> int:
    is_written, data = cv2.imencode(".png", np.concatenate([stripe.pixels for stripe in stripes]))
    assert is_written, "PNG holds gray of 8 and 16 bits"
    path.write_bytes(data.tobytes())
    return len(data)


def _classes(pack: Pack) -> ClassTable | None:
    """Return the classes of the label, or of the first field with one class for each pixel."""
    tables = {field.name: field.classes for field in pack.manifest.fields if field.kind == CLASSES}
    return tables.get(LABEL) or next(iter(tables.values()), None)


def _place(pack: Pack, picture: _Picture) -> Place | None:
    """Return the place of a picture, or of the volume of these slices."""
    first, *others = picture.rows
    if picture.slices is None:
        return pack.picture_place(first.number)
    place = pack.place(first.number)
    assert place is not None, "slices are known by their places"
    matrix, step = place.matrix, np.cross(*place.matrix.T[:2])
    step = step / (np.linalg.norm(step) or 1)  # of a single slice nothing more is known
    if others and (other := pack.place(others[-1].number)) is not None:
        step = (other.matrix - matrix)[:, -1] / (picture.slices[-1] - picture.slices[0])
    volume = np.column_stack([matrix[:, :2], step, matrix[:, -1] - picture.slices[0] * step])
    return Place(place.system, tuple(volume.ravel().tolist()), place.no_data)


def _stripes(picture: _Picture, stitching: Stitching) -> Iterator[Stripe]:
    """Yield the prediction of a picture: at once if it is one row, else by its slices, or by stripes of its tiles."""
    first, *others = [row for row in picture.rows if row.is_predicted]
    if picture.slices is not None:
        size = (picture.slices[-1] + 1, *first.size)
        for number, row in zip(picture.slices, picture.rows, strict=True):
            if row.is_predicted:
                yield Stripe(picture.key, size, number, _array(row)[..., None, :, :])
        return
    if first.key == picture.key:
        assert not others, "a picture that is not cut is one row"
        yield Stripe(picture.key, first.size, 0, _array(first))
        return
    tiles = ((row.key, _array(row)) for row in [first, *others])
    yield from stitch_stripes(tiles, stitching.fill, stitching.weight)


def _array(row: _Row) -> NDArray[Any]:
    """Map the prediction of a row: numbers for its pixels, with or without planes before them."""
    try:
        array: NDArray[Any] = np.load(row.file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{row.file}: is not an array as np.save writes it ({error})") from error
    sides = len(row.size)
    if array.dtype.kind not in "biuf" or array.ndim not in (sides, sides + 1) or array.shape[-sides:] != row.size:
        raise InputError(
            f"{row.file}: has {array.shape} numbers of {array.dtype}; expected {size_text(row.size)}, the size of its "
            "row, with or without planes before"
        )
    return array


def _in_file(stripe: Stripe, argmax: bool, table: ClassTable | None) -> Stripe:
    """Return a stripe with numbers that files have: no truth values, and no numbers of 16 bits with a point."""
    pixels = stripe.pixels
    if argmax and pixels.ndim > len(stripe.size):
        pixels = pixels.argmax(0).astype(np.uint8 if len(pixels) <= MOST_IN_BYTES else np.uint16)
    elif pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8)
    elif pixels.dtype == np.float16:
        pixels = pixels.astype(np.float32)
    elif pixels.dtype.kind in "iu" and pixels.dtype.itemsize == 8:  # what argmax gives
        pixels = _narrow(pixels, np.dtype(np.int32 if table is None else table.index_dtype))
    return stripe._replace(pixels=pixels)


def _narrow(pixels: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    if pixels.min() < limits.min or pixels.max() > limits.max:
        raise InputError(f"a prediction has the numbers {pixels.min()} to {pixels.max()}, and no class has such ones")
    return pixels.astype(dtype)
