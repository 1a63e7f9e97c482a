"""Ultralytics: images and masks of semantic segmentation; with a field of ids, labels as outlines for `segment`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from packer.errors import UsageError
from packer.packs.layouts.layout import LaidOut, Roles, RowOfPack, split_name
from packer.packs.write_rows import RowFile, png

IGNORED = 255
IMAGES = "images"


class UltralyticsLayout:
    """`yolo semantic train data=FOLDER/data.yaml`; `yolo segment` also reads it if there are objects.

    Masks keep every pixel. An outline keeps the outer edge of an object: holes are filled, and parts are joined by a
    line.
    """

    def __init__(self, roles: Roles) -> None:
        roles.check_pictures("ultralytics")
        self._roles, self._classes = roles, roles.classes
        if len(self._classes) >= IGNORED:
            raise UsageError("--layout ultralytics: has masks of 8 bits, and this pack has more than 254 classes")

    def row(self, row: RowOfPack) -> LaidOut:
        key = row.flat_name if IMAGES in row.name.split("/") else row.name  # labels are sought by the last of these
        name = f"{split_name(row.split)}/{key}"
        files = [RowFile(f"{IMAGES}/{name}.png", png(self._roles.picture(row)))]
        if (numbers := self._roles.numbers(row)) is not None:
            masks = np.where(numbers == self._classes.ignore_index, IGNORED, numbers).astype(np.uint8)
            files.append(RowFile(f"masks/{name}.png", png(masks)))
            ids = self._roles.ids
            if ids is not None and ids.name in row.fields:
                lines = "".join(_lines(row.fields[ids.name], masks))
                files.append(RowFile(f"labels/{name}.txt", lines.encode()))
        return LaidOut(tuple(files))

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        names = list(dict.fromkeys(map(split_name, splits)))
        train = "train" if "train" in names else names[0]
        others = [name for name in names if name != train]
        paths = {"train": f"images/{train}", "val": f"images/{'val' if 'val' in names else (others or names)[0]}"}
        paths |= {"test": "images/test"} if "test" in names else {}
        document: dict[str, Any] = {"path": ".", **paths, "masks_dir": "masks"}
        document["names"] = dict(enumerate(self._classes.names))
        yield RowFile("data.yaml", yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode())


def _lines(ids: NDArray[Any], masks: NDArray[np.uint8]) -> Iterator[str]:
    """Yield a line for each object: its class, and its outline in parts of the sides."""
    height, width = ids.shape
    for number in np.unique(ids[ids > 0]).tolist():
        pixels = (ids == number) & (masks != IGNORED)
        if not pixels.any():
            continue
        label = int(np.bincount(masks[pixels]).argmax())
        parts, _ = cv2.findContours(pixels.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        points = _joined([part.reshape(-1, 2) for part in parts])
        if len(points) < 3:
            points = np.resize(points, (3, 2))
        # the middle of a pixel: a reader that cuts off what is behind the point finds the same pixel
        numbers = (points + 0.5) / (width, height)
        yield " ".join([str(label), *(f"{number:.8g}" for number in numbers.reshape(-1))]) + "\n"


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return one outline that goes from part to part, and back the same way."""
    first, *others = sorted(parts, key=len, reverse=True)
    for part in others:
        first = np.concatenate([first, first[-1:], part, part[:1], first[-1:]])
    return first
