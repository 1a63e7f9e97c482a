"""Write predictions with the place of their row: `.tif` as GeoTIFF, `.nii` and `.nii.gz` as NIfTI."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from readers.contract.atomic import move_into_place, partial, sync_folder
from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.leftovers import sweep
from readers.contract.place import NIFTI, Place
from readers.predictions import geotiff, nifti

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_BANDS = 65_535
"""TIFF counts them with 16 bits."""
MOST_BYTES = 1 << 46
TIFF = (".tif", ".tiff")
NIFTIS = (".nii.gz", ".nii")


def write_prediction(
    path: str | os.PathLike[str],
    pixels: Any,
    place: Place | None = None,
    *,
    classes: ClassTable | None = None,
    nodata: float | None = None,
) -> None:
    """Write the prediction for a row: (H,W), (C,H,W) or, of a volume, (D,H,W) or (C,D,H,W), as an array or a tensor.

    `place` is `dataset.place(index)`, `classes` a table whose colours a GeoTIFF of class numbers gets.
    `nodata` is the number that a GeoTIFF names for pixels without data. The file appears whole, or not at all.
    """
    array = as_array(pixels)
    sides = 3 if _is_volume(Path(path), place, array.ndim) else 2
    if array.ndim not in (sides, sides + 1):
        raise RequestError(f"a prediction of the shape {array.shape} does not fit; expected {sides} sides, or bands")
    size = array.shape[-sides:]
    bands = array.shape[0] if array.ndim > sides else None
    with PredictionFile(path, size, array.dtype, place, bands=bands, classes=classes, nodata=nodata) as file:
        file.write(array)


class PredictionFile:
    """A prediction that is written in parts, for pictures and volumes larger than memory.

    `write` may give parts in any order; what is not given is `fill`. The parts are kept in a file next to `path`, which
    has the size of the unpacked prediction. The end of the `with` block writes the file; an error in it writes nothing.
    With `rgb`, the three bands of a GeoTIFF are red, green and blue.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        size: Sequence[int],
        dtype: Any,
        place: Place | None = None,
        *,
        bands: int | None = None,
        fill: float = 0,
        classes: ClassTable | None = None,
        nodata: float | None = None,
        rgb: bool = False,
    ) -> None:
        self.path, self.place = Path(path), place
        self._size = tuple(map(operator.index, size))
        self._bands, self._classes, self._nodata, self._rgb = bands, classes, nodata, rgb
        self._dtype = _dtype_of(dtype)
        self._fill, self._opened = fill, ExitStack()
        self._is_tiff = self.path.name.lower().endswith(TIFF)
        self._check()
        self._scratch: BinaryIO | None = None

    def _check(self) -> None:
        """Refuse what no file can hold, and a path that cannot be written."""
        bands = 1 if self._bands is None else self._bands
        if not self._size or min(self._size) < 1 or not 1 <= bands <= MOST_BANDS:
            raise RequestError(f"{self.path}: expected sides and bands from 1 on, found {self._size} and {self._bands}")
        if math.prod(self._size) * bands * self._dtype.itemsize > MOST_BYTES:
            raise RequestError(f"{self.path}: {self._size} with {bands} bands is more than {MOST_BYTES >> 40} TiB")
        if self._rgb and not (self._bands == 3 and self._is_tiff):
            raise RequestError(f"{self.path}: rgb needs three bands and a TIFF")
        for name, number in (("fill", self._fill), ("nodata", self._nodata)):
            if number and not _has(self._dtype, number):
                raise RequestError(f"{self.path}: {name}={number!r} is not a number of {self._dtype}")
        if not self.path.absolute().parent.is_dir():
            raise RequestError(f"{self.path}: there is no folder {self.path.parent}; make it first")
        if not self._is_tiff and not self.path.name.lower().endswith(NIFTIS):
            raise RequestError(f"{self.path}: expected a name that ends with {', '.join((*TIFF, *NIFTIS))}")
        if self._is_tiff and len(self._size) != 2:
            raise RequestError(f"{self.path}: a TIFF has a height and a width; write a volume as .nii.gz")

    def __enter__(self) -> Self:
        if self._is_tiff:
            geotiff.check(self._dtype, self.place)
        self._head = b"" if self._is_tiff else nifti.header(self._size, self._bands, self._dtype, self.place)
        sweep(self.path.absolute().parent, math.inf)  # the folder is the user's: only what our dead processes left
        self._new = self._opened.enter_context(partial(self.path.parent))
        self._scratch = self._opened.enter_context(self._new.with_name("parts").open("w+b"))
        if self._fill:
            line = np.full(self._size[-1], self._fill, self._dtype).tobytes()
            for _ in range(self._lines):
                self._scratch.write(line)
        else:
            self._scratch.truncate(self._lines * self._size[-1] * self._dtype.itemsize)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if kind is None:
                self._finish()

    def write(self, pixels: Any, *start: SupportsIndex) -> None:
        """Write a part, which begins at `start`: at a row and a column; of a volume, at a slice first. By default, what
        is left out of `start` is 0. All bands are given at once."""
        if self._scratch is None or self._scratch.closed:
            raise RequestError(f"{self.path}: is written within a with block")
        part, sides = as_array(pixels), len(self._size)
        if part.ndim == sides:
            part = part[None]
        begin = tuple(map(operator.index, start))
        begin = (*begin, *[0] * (sides - len(begin)))
        ends = [at + side for at, side in zip(begin, part.shape[1:], strict=False)]
        is_inside = all(0 <= at < end <= side for at, end, side in zip(begin, ends, self._size, strict=False))
        if (part.ndim, len(begin)) != (sides + 1, sides) or len(part) != (self._bands or 1) or not is_inside:
            raise RequestError(
                f"{self.path}: a part {part.shape} at {begin} is not within {self._bands or 1} bands of {self._size}"
            )
        self._check_numbers(part)
        self._put(np.ascontiguousarray(part, self._dtype), begin)

    def _check_numbers(self, part: NDArray[Any]) -> None:
        """Refuse numbers that the file cannot have: none is wrapped or rounded to a whole number."""
        if part.dtype == self._dtype or part.dtype == np.bool_:
            return
        is_whole, becomes_whole = part.dtype.kind in "iu", self._dtype.kind in "iu"
        if part.dtype.kind not in "iuf" or (becomes_whole and not is_whole):
            raise RequestError(f"{self.path}: has numbers of {self._dtype}, a part has {part.dtype}; convert it")
        least, most = part.min(), part.max()
        if becomes_whole and not (_has(self._dtype, int(least)) and _has(self._dtype, int(most))):
            raise RequestError(f"{self.path}: has numbers of {self._dtype}, a part has {least} to {most}")
        if not becomes_whole and self._dtype.itemsize < 8:
            with np.errstate(over="ignore"):
                if not np.array_equal(np.isinf(part.astype(self._dtype)), np.isinf(part)):
                    raise RequestError(f"{self.path}: has numbers of {self._dtype}, a part has {least} to {most}")

    def _put(self, part: NDArray[Any], begin: tuple[int, ...]) -> None:
        """Write a part to its positions in the file of parts: whole runs of rows at once where it is as wide."""
        assert self._scratch is not None, "the file is open"
        size, width = self._dtype.itemsize, self._size[-1]
        is_wide = part.shape[-1] == width
        for index in np.ndindex(part.shape[: -2 if is_wide else -1]):
            at = [index[0], *(first + number for first, number in zip(begin, index[1:], strict=False))]
            at += [begin[-2]] if is_wide else []
            line = int(np.ravel_multi_index(at, (self._bands or 1, *self._size[:-1])))
            self._scratch.seek((line * width + begin[-1]) * size)
            self._scratch.write(part[index].data)

    @property
    def _shape(self) -> tuple[int, ...]:
        return self._size if self._bands is None else (self._bands, *self._size)

    @property
    def _lines(self) -> int:
        """The rows of all bands and slices."""
        return int(np.prod(self._shape[:-1], dtype=np.int64))

    def _finish(self) -> None:
        """Write the file, and bring it into its place."""
        with self._new.open("wb") as file:
            if self._is_tiff:
                height, width = self._size
                shape = self._bands or 1, height, width
                picture = geotiff.WrittenPicture(shape, self._dtype, self.place, self._classes, self._nodata, self._rgb)
                geotiff.write(file, picture, self._parts(picture))
            else:
                pieces = self._pieces()
                for piece in nifti.packed(pieces) if self.path.name.lower().endswith(".gz") else pieces:
                    file.write(piece)
        move_into_place(self._new, self.path)
        sync_folder(self.path.parent)

    def _pieces(self) -> Iterator[bytes]:
        assert self._scratch is not None, "the file is open"
        yield self._head
        self._scratch.seek(0)
        while piece := self._scratch.read(1 << 20):
            yield piece

    def _parts(self, picture: geotiff.WrittenPicture) -> Iterator[NDArray[Any]]:
        assert self._scratch is not None, "the file is open"
        bands, height, width = picture.shape
        for band in range(bands):
            for rows in picture.lines:
                self._scratch.seek((band * height + rows.start) * width * self._dtype.itemsize)
                data = self._scratch.read(len(rows) * width * self._dtype.itemsize)
                yield np.frombuffer(data, self._dtype).reshape(len(rows), width)


def _dtype_of(dtype: Any) -> np.dtype[Any]:
    """Return the written type for a type of NumPy or of PyTorch; truth values are bytes."""
    try:
        written = np.dtype(str(dtype).removeprefix("torch.") if "torch." in str(dtype) else dtype)
    except TypeError as error:
        raise RequestError(f"dtype={dtype!r}: expected a type of NumPy or PyTorch, such as uint8") from error
    return np.dtype(np.uint8) if written == np.bool_ else written.newbyteorder("<")


def as_array(pixels: Any) -> NDArray[Any]:
    """Return an array, or a tensor on any device, as an array. NumPy has no bfloat16."""
    if not hasattr(pixels, "detach"):
        return np.asarray(pixels)
    tensor = pixels.detach().cpu()
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array


def _has(dtype: np.dtype[Any], number: float) -> bool:
    """Return whether a dtype has this number, or one next to it if it is not whole."""
    if not isinstance(number, (int, float, np.integer, np.floating)):
        return False
    if dtype.kind not in "iu":
        return dtype.kind == "f"
    limits = np.iinfo(dtype)
    return float(number).is_integer() and limits.min <= int(number) <= limits.max


def _is_volume(path: Path, place: Place | None, dimensions: int) -> bool:
    """Return whether a prediction has three sides: (C,H,W) and (D,H,W) look alike."""
    if path.name.lower().endswith(TIFF):
        return False
    if place is not None and place.kind == NIFTI:
        return len(place.transform) == 12
    return dimensions >= 3
