"""Folders of pictures with annotations of LabelMe, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from conftest import write_png

from readers.contract.manifest import Manifest

SIZE = (24, 36)
Shape = Mapping[str, Any]


def class_names(out: Path) -> tuple[str, ...]:
    """Return the names of the classes of a pack."""
    classes = Manifest.load(out).classes
    assert classes is not None
    return classes.names


def box(label: str, top: int, left: int, height: int, width: int, **more: Any) -> Shape:
    """Return a rectangle of LabelMe that covers these pixels."""
    points = [[left, top], [left + width - 1, top + height - 1]]
    return {"label": label, "shape_type": "rectangle", "points": points, **more}


def labelme_text(shapes: Iterable[Shape], size: tuple[int, int] = SIZE, **more: Any) -> str:
    """Return a file of LabelMe."""
    facts = {"version": "6.3.1", "imagePath": "a.png", "imageHeight": size[0], "imageWidth": size[1], **more}
    return json.dumps({**facts, "shapes": list(shapes)})


def annotated_folder(
    path: Path, pictures: Mapping[str, Iterable[Shape] | None], images: str = "{}.png", annotations: str = "{}.json"
) -> Path:
    """Write pictures with their annotations. None: a picture has none."""
    for number, (key, shapes) in enumerate(pictures.items()):
        write_png(path / images.format(key), np.random.default_rng(number).integers(0, 256, (*SIZE, 3), np.uint8))
        if shapes is not None:
            file = path / annotations.format(key)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(labelme_text(shapes), encoding="utf-8")
    return path
