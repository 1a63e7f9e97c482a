"""Small pictures of the sample scenes, with labels of class numbers, as trainers of other libraries read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from program import SAMPLES

from packer import build_pack
from scenes.pictures import read_picture, write_picture
from scenes.street import CLASSES, VOID

IGNORED = 255
NAMES = tuple(CLASSES)[:VOID]
COLOURS = tuple(CLASSES.values())[:VOID]


SCENES, STEP = {"train": 8, "val": 4}, 4
"""The scenes that are written, and the distance of their pixels; a bench takes more."""


def write_numbered(raw: Path, image_suffix: str = ".png") -> None:
    """Write every STEPth pixel of the first SCENES to `{split}/images` and `{split}/labels`; void is 255."""
    numbers = np.full(1 << 24, IGNORED, np.uint8)
    for number, (red, green, blue) in enumerate(COLOURS):
        numbers[red << 16 | green << 8 | blue] = number
    step = STEP
    for split, count in SCENES.items():
        for path in sorted((SAMPLES / split / "labels").iterdir())[:count]:
            colours = read_picture(path)[::step, ::step].astype(np.int64)
            (picture,) = (SAMPLES / split / "images").glob(f"{path.stem}.*")
            label = numbers[colours[..., 0] << 16 | colours[..., 1] << 8 | colours[..., 2]]
            write_picture(raw / split / "images" / f"{path.stem}{image_suffix}", read_picture(picture)[::step, ::step])
            write_picture(raw / split / "labels" / path.name, label)


def pack_numbered(raw: Path, out: Path) -> None:
    """Pack these folders, each picture with its own size."""
    build_pack(raw, out, labels="index", classes=NAMES, ignore=[str(IGNORED)], size="native", workers=1)


def write_streets(folder: Path, image: str = "{split}/images", label: str = "{split}/labels") -> None:
    """Copy the pictures of the sample scenes, and write their labels as class numbers; void is 255."""
    for path in sorted(SAMPLES.glob("*/images/*")):
        split = path.parts[-3]
        colours = read_picture(SAMPLES / split / "labels" / f"{path.stem}.png")
        numbers = np.full(colours.shape[:2], IGNORED, np.uint8)
        for number, colour in enumerate(COLOURS):
            numbers[(colours == colour).all(-1)] = number
        write_picture(folder / label.format(split=split) / f"{path.stem}.png", numbers)
        copy = folder / image.format(split=split) / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


def pack_streets(out: Path) -> None:
    """Pack the sample scenes, each picture with its own size."""
    build_pack(str(SAMPLES), str(out), size="native", labels="index", ignore=["void"])
