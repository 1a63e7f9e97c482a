"""COCO: pictures, and the objects of each split as run lengths, in annotations/instances_SPLIT.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import UsageError
from packer.packs.layouts.layout import LaidOut, Roles, RowOfPack, split_name
from packer.packs.write_rows import RowFile, png

IMAGES, OBJECTS = "annotations/images_{}.txt", "annotations/objects_{}.txt"
"""Lists while rows are written. At the end they become one file."""
MOST_OBJECTS = 1 << 20
"""The objects of a picture: the id of an object is the number of its row times this, and its own."""


class CocoLayout:
    """Each object of a field of ids is an annotation; without such a field, the pixels of each class of a picture are.

    Run lengths keep every pixel, which outlines would not. Categories count from 1, as COCO's do.
    """

    def __init__(self, roles: Roles) -> None:
        roles.check_pictures("coco")
        self._roles, self._classes = roles, roles.classes

    def row(self, row: RowOfPack) -> LaidOut:
        split, image = split_name(row.split), self._roles.picture(row)
        name = f"{split}/{row.name}.png"
        height, width = image.shape[:2]
        number = row.number + 1
        entry = json.dumps({"id": number, "file_name": f"{row.name}.png", "width": width, "height": height})
        objects = [
            json.dumps({"id": row.number * MOST_OBJECTS + 1 + count, "image_id": number, **facts})
            for count, facts in enumerate(self._objects(row))
        ]
        if len(objects) >= MOST_OBJECTS:
            raise UsageError(f"{row.key}: has {len(objects)} objects, more than {MOST_OBJECTS - 1}")
        lists = {IMAGES.format(split): (entry,), OBJECTS.format(split): tuple(objects)}
        return LaidOut((RowFile(name, png(image)),), lists)

    def _objects(self, row: RowOfPack) -> Iterator[dict[str, Any]]:
        numbers = self._roles.numbers(row)
        if numbers is None:
            return
        is_labelled = numbers != self._classes.ignore_index
        ids = self._roles.ids
        if ids is None or ids.name not in row.fields:
            for label in np.unique(numbers[is_labelled]).tolist():
                yield _facts(numbers == label, label)
            return
        objects = row.fields[ids.name]
        for number in np.unique(objects[objects > 0]).tolist():
            mask = (objects == number) & is_labelled
            if mask.any():  # an object has one class
                yield _facts(mask, int(np.bincount(numbers[mask]).argmax()))

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        """Join the lists of each split into one file, a line at a time."""
        categories = [{"id": number + 1, "name": name} for number, name in enumerate(self._classes.names)]
        for split in dict.fromkeys(map(split_name, splits)):
            images, objects = (folder / name.format(split) for name in (IMAGES, OBJECTS))
            with (folder / f"annotations/instances_{split}.json").open("w", encoding="utf-8") as out:
                out.write(f'{{"categories": {json.dumps(categories, ensure_ascii=False)},\n')
                for title, path in (("images", images), ("annotations", objects)):
                    out.write(f'"{title}": [\n')
                    with path.open(encoding="utf-8") as lines:
                        out.writelines(f"{',' if count else ''}{line}" for count, line in enumerate(lines))
                    out.write("],\n" if title == "images" else "]}\n")
            images.unlink()
            objects.unlink()
        yield from ()


def _facts(mask: NDArray[np.bool_], label: int) -> dict[str, Any]:
    """Return an annotation: its run lengths column by column, area and box."""
    height, width = mask.shape
    flat = mask.reshape(-1, order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    bounds = np.concatenate([[0], edges, [len(flat)]])
    counts = np.diff(bounds).tolist()
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    top, left = int(rows[0]), int(columns[0])
    return {
        "category_id": label + 1,
        "segmentation": {"counts": [0, *counts] if flat[0] else counts, "size": [height, width]},
        "area": int(mask.sum()),
        "bbox": [left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1],
        "iscrowd": 0,
    }
