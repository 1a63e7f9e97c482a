"""Write volumes of any size with little memory: a NIfTI file, compressed or not, or a TIFF with many pages."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drills.volumes import nifti_head
from numpy.typing import NDArray
from PIL import Image

from scenes.giant_tiff import label_lines, picture_lines

VOLUMES = ("nii", "nii.gz", "tif")
Slice = Callable[[int], NDArray[Any]]


def make_volume(raw: Path, sides: tuple[int, ...], form: str, name: str = "giant") -> None:
    """Write a volume of 16 bits and its label, of the form `nii`, `nii.gz` or `tif`, below a folder."""
    depth, *size = sides
    picture, label = picture_lines((size[0] + 1, size[1])), label_lines((size[0] + depth, size[1]))
    slices: tuple[tuple[str, Slice], ...] = (
        ("images", lambda number: picture(number % 7, number % 7 + size[0])[..., number % 3].astype("<u2") * 9),
        ("labels", lambda number: label(number, number + size[0])[..., 0]),
    )
    for folder, numbers in slices:
        path = raw / folder / f"{name}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "tif":
            pages = (Image.fromarray(numbers(number)) for number in range(depth))
            next(pages).save(path, save_all=True, append_images=pages, compression="tiff_adobe_deflate")
        else:
            _write_nifti(path, sides, numbers)


def _write_nifti(path: Path, sides: tuple[int, ...], numbers: Slice) -> None:
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        file.write(nifti_head(numbers(0).dtype, sides[::-1]))
        for number in range(sides[0]):
            file.write(numbers(number).tobytes())
