"""nnU-Net: a folder for $nnUNet_raw, such as Dataset001_NAME: imagesTr, labelsTr, dataset.json."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import UsageError
from packer.packs.layouts.layout import TEST, LaidOut, Roles, RowOfPack
from packer.packs.write_rows import RowFile, png
from packer.packs.write_volumes import IGNORE, SUFFIX, as_volume, packed

BACKGROUND = "background"
KEYS = "splits/{}.txt"


class NnunetLayout:
    """Pictures as PNG, volumes as NIfTI with a file for each channel. The split test goes to imagesTs without labels.

    Number 0 is called background, as nnU-Net demands; ignored pixels get the number after the last class.
    """

    def __init__(self, roles: Roles) -> None:
        self._roles, self._names = roles, roles.classes.names
        self._ignore = roles.classes.ignore_index
        if not roles.image.is_volume:
            roles.check_pictures("nnunet")
        if len(self._names) > 254:
            raise UsageError("--layout nnunet: has labels of 8 bits, and this pack has more than 254 classes")

    def row(self, row: RowOfPack) -> LaidOut:
        part = "Ts" if row.split == TEST else "Tr"
        numbers = self._roles.numbers(row)
        if numbers is None and part == "Tr":
            return LaidOut(())
        files = [RowFile(f"images{part}/{name}", data) for name, data in self._images(row)]
        if numbers is not None and part == "Tr":
            files.append(RowFile(f"labelsTr/{row.flat_name}{self._ending}", self._label(row, numbers)))
        return LaidOut(tuple(files), {KEYS.format(row.split): (row.flat_name,)})

    @property
    def _ending(self) -> str:
        return SUFFIX if self._roles.image.is_volume else ".png"

    def _images(self, row: RowOfPack) -> Iterator[tuple[str, bytes]]:
        field = self._roles.image
        if not field.is_volume:
            yield f"{row.flat_name}_0000.png", png(self._roles.picture(row))
            return
        volume = as_volume(field, row.fields[field.name])
        for channel, numbers in enumerate(volume if volume.ndim == 4 else volume[None]):
            yield f"{row.flat_name}_{channel:04d}{SUFFIX}", packed(numbers, row.place)

    def _label(self, row: RowOfPack, numbers: NDArray[Any]) -> bytes:
        changed = np.where(numbers == self._ignore, len(self._names), numbers).astype(np.uint8)
        return packed(changed, row.place) if self._roles.image.is_volume else png(changed)

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        bands = self._roles.image.bands or ("image",)
        labels = {_name(number, name): number for number, name in enumerate(self._names)}
        document = {
            "channel_names": {str(number): name for number, name in enumerate(bands)},
            "labels": {**labels, IGNORE: len(self._names)},
            "numTraining": sum(1 for path in (folder / "labelsTr").glob("*")),
            "file_ending": self._ending,
        }
        yield RowFile("dataset.json", (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
        lists = {split: folder / KEYS.format(split) for split in ("train", "val")}
        if all(path.is_file() for path in lists.values()):  # for $nnUNet_preprocessed/Dataset001_NAME
            keys = {split: path.read_text(encoding="utf-8").splitlines() for split, path in lists.items()}
            yield RowFile("splits_final.json", (json.dumps([keys], indent=1) + "\n").encode())
        shutil.rmtree(folder / KEYS.partition("/")[0], ignore_errors=True)


def _name(number: int, name: str) -> str:
    """Return the name of a class. Two names have a meaning in nnU-Net: other classes get their number behind them."""
    if number == 0:
        return BACKGROUND
    return f"{name}_{number}" if name in (BACKGROUND, IGNORE) else name
