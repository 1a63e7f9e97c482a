"""A folder of DICOM files as a volume: each file is a slice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.grid import NOISE, Grid
from packer.errors import BadPair
from packer.sources.volumes.dicom_slice import DicomSlice, is_dicom, read_slice
from packer.sources.volumes.header_lines import from_left
from packer.sources.volumes.volume_header import VolumeHeader
from packer.sources.volumes.voxels import Voxels
from readers.contract.place import NIFTI, System

KIND = "DICOM"
FOLDER = "/"
"""The end of the path of a volume that is a folder."""
_SUFFIX = ".dcm"
_NO_SUFFIX = re.compile(r"[^.]+(\.[0-9]+)*", re.ASCII)
"""A name without a suffix: parts of an identifier may follow each other by dots."""
_INDEX = "DICOMDIR"
_TRIED = 8
"""The files without a suffix that show whether a folder is one of DICOM."""
_ALIKE = 1e-4
"""Two numbers of a direction, or of a spacing, may differ by this."""


@dataclass(frozen=True)
class DicomSlices(Voxels):
    """The slices of a series in the order of the volume."""

    slices: tuple[DicomSlice, ...]
    dtype: np.dtype[Any]
    """The type of the stored numbers; float32 if each file has a scaling of its own, which is applied then."""
    offset: int = 0
    is_packed: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file.path for file in self.slices)

    def check(self, size: int) -> None:
        """Do nothing: each header was compared with the length of its pixels."""

    def pieces(self, size: int) -> Iterator[bytes]:
        for number in range(len(self.slices)):
            yield self._numbers(number).tobytes()

    def part(self, start: int, size: int) -> bytes:
        return self._numbers(start // size).tobytes()

    def _numbers(self, number: int) -> NDArray[Any]:
        file = self.slices[number]
        numbers = file.numbers()
        if self.dtype.kind != "f":
            return numbers
        return (numbers * np.float64(file.slope) + file.intercept).astype(self.dtype)


def series_folders(root: Path, files: Iterable[str]) -> list[str]:
    """Return the folders below `root` that have files of DICOM, each with a slash behind it."""
    names: dict[str, list[str]] = {}
    for file in files:
        folder, slash, name = file.rpartition("/")
        if slash and _may_be_slice(name):
            names.setdefault(folder, []).append(name)
    return [
        folder + FOLDER
        for folder, slices in sorted(names.items())
        if any(map(is_slice, slices)) or any(_is_dicom(root / folder / name) for name in slices[:_TRIED])
    ]


def files_of_series(folder: Path) -> list[Path]:
    """Return the files of a folder that may be slices, by their names."""
    return sorted(path for path in folder.iterdir() if _may_be_slice(path.name))


def read_series(folder: Path) -> tuple[VolumeHeader, DicomSlices]:
    """Return the header of a volume, and its slices in order. Raise BadPair with the file that does not fit."""
    files = [path for path in files_of_series(folder) if is_slice(path.name) or _is_dicom(path)]
    if not files:
        raise BadPair("has no files of DICOM")
    slices = list(map(read_slice, files))
    first = slices[0]
    for other in slices[1:]:
        _check_alike(first, other)
    slices, step = _in_order(slices)
    first, columns = slices[0], np.reshape(slices[0].directions, (2, 3))
    right, down = (column * step for column, step in zip(columns, first.spacing, strict=True))
    transform = from_left((right.tolist(), down.tolist(), step), first.position)
    scalings = {(file.slope, file.intercept) for file in slices}
    dtype = first.dtype if len(scalings) == 1 else np.dtype("<f4")
    slope, intercept = scalings.pop() if len(scalings) == 1 else (0.0, 0.0)
    sides = (*first.sides, len(slices))
    header = VolumeHeader(
        KIND,
        dtype,
        sides,
        Grid(sides, (("header", transform),), System(NIFTI)),
        slope,
        intercept,
        text=repr((dtype.str, sides, transform, slope, intercept)).encode(),
    )
    return header, DicomSlices(tuple(slices), dtype)


def _check_alike(first: DicomSlice, file: DicomSlice) -> None:
    """Refuse a file that cannot be in a volume with another."""
    names = f"{first.path.name} and {file.path.name}"
    if file.series != first.series:
        raise BadPair(f"{names}: are of two series, {first.series[:64]} and {file.series[:64]}; give each a folder")
    if file.sides != first.sides:
        raise BadPair(f"{names}: have {first.sides[1]}x{first.sides[0]} and {file.sides[1]}x{file.sides[0]} pixels")
    if (file.bits, file.is_signed, file.photometric) != (first.bits, first.is_signed, first.photometric):
        raise BadPair(f"{names}: have numbers of two kinds")
    apart = np.abs(np.subtract((*file.directions, *file.spacing), (*first.directions, *first.spacing))).max()
    if apart > _ALIKE:
        raise BadPair(f"{names}: have pixels in other directions, or at other distances")


def _in_order(slices: Sequence[DicomSlice]) -> tuple[list[DicomSlice], list[float]]:
    """Return slices in their order in space, and the step from one to the next. Raise BadPair if steps differ."""
    right, down = np.reshape(slices[0].directions, (2, 3))
    lengths = np.array([right @ right, down @ down, right @ down])
    if np.abs(lengths - (1, 1, 0)).max() > 10 * _ALIKE or min(slices[0].spacing) <= 0:
        raise BadPair(f"{slices[0].path.name}: has axes that are not at right angles, or no distances above 0")
    normal = np.cross(right, down)
    order = sorted(slices, key=lambda file: (float(normal @ file.position), file.path.name))
    if len(order) == 1:
        return order, (normal * order[0].thickness).tolist()
    places = np.array([file.position for file in order])
    gaps = np.diff(places @ normal)
    usual = float(np.median(gaps))
    for number, gap in enumerate(gaps.tolist()):
        names = f"{order[number].path.name} and {order[number + 1].path.name}"
        if gap <= NOISE * usual or gap < _ALIKE:
            raise BadPair(f"{names}: are at one place; keep one of them")
        if abs(gap - usual) > NOISE * usual:
            raise BadPair(f"{names}: are {gap:.6g} mm apart, others {usual:.6g} mm; is a slice missing?")
    step = (places[-1] - places[0]) / (len(order) - 1)
    off = np.abs(places - places[0] - np.arange(len(order))[:, None] * step).max(1)
    if off.max() > NOISE * min(usual, *slices[0].spacing):
        raise BadPair(f"{order[int(off.argmax())].path.name}: is not on a line with the others, at equal distances")
    return order, step.tolist()


def _may_be_slice(name: str) -> bool:
    has_no_suffix = _NO_SUFFIX.fullmatch(name) is not None and name != _INDEX
    return not name.startswith(".") and (is_slice(name) or has_no_suffix)


def is_slice(name: str) -> bool:
    """Return whether a file is one of DICOM by its suffix."""
    return name.lower().endswith(_SUFFIX)


def _is_dicom(path: Path) -> bool:
    with suppress(OSError):
        return is_dicom(path)
    return False
