"""Pascal VOC: JPEGImages, SegmentationClass with palettes, ImageSets/Segmentation. torchvision and mmsegmentation read
it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from packer.errors import UsageError
from packer.packs.layouts.layout import TEST, LaidOut, Roles, RowOfPack, jpeg, split_name
from packer.packs.write_rows import RowFile

SETS = "ImageSets/Segmentation"
VOID = 255
"""The number of pixels in no class."""


class VocLayout:
    """Pictures as JPEG, because readers of VOC look for `.jpg`; labels exact, with the ignored number."""

    def __init__(self, roles: Roles) -> None:
        roles.check_pictures("voc")
        if len(roles.classes) > VOID:
            raise UsageError(f"--layout voc: has labels of 8 bits, and this pack has more than {VOID} classes")
        palette = roles.classes.palette
        self._roles = roles
        self._colours = np.zeros((256, 3), np.uint8)
        self._colours[: len(palette)] = [palette[number] for number in range(min(256, len(palette)))]
        self._colours[VOID] = palette.ignored

    def row(self, row: RowOfPack) -> LaidOut:
        files = [RowFile(f"JPEGImages/{row.flat_name}.jpg", jpeg(self._roles.picture(row)))]
        if (numbers := self._roles.numbers(row)) is None:
            return LaidOut(tuple(files))
        files.append(RowFile(f"SegmentationClass/{row.flat_name}.png", self._palette_png(numbers)))
        split = split_name(row.split)
        names = [split] if split == TEST else [split, "trainval"]
        return LaidOut(tuple(files), {f"{SETS}/{name}.txt": (row.flat_name,) for name in names})

    def _palette_png(self, numbers: NDArray[Any]) -> bytes:
        picture = Image.fromarray(numbers.astype(np.uint8))
        picture.putpalette(self._colours.tobytes())
        file = io.BytesIO()
        picture.save(file, "PNG")
        return file.getvalue()

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        yield RowFile("class_names.txt", "".join(f"{name}\n" for name in self._roles.classes.names).encode())
