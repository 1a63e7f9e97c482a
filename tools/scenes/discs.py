"""Pictures of discs and blocks with the number and the class of each object, as trainers of instances read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np

from packer import build_pack
from scenes.pictures import write_picture

NAMES = ("disc", "block")
COLOURS = ((60, 90, 250), (250, 90, 60))


def write_discs(raw: Path, counts: Mapping[str, int], side: int) -> None:
    """Write `{split}/images`, `labels` (0 is background), `instances`, and `annotations` with both in red and green."""
    numbers = np.random.default_rng(5)
    for split, count in counts.items():
        for row in range(count):
            picture = numbers.integers(0, 60, (side, side, 3), np.uint8)
            label, ids = np.zeros((2, side, side), np.uint8)
            for number in range(1, 2 + row % 4):
                kind, (x, y) = int(numbers.integers(2)), numbers.integers(20, side - 20, 2).tolist()
                mask, size = np.zeros((side, side), np.uint8), 8 + 3 * number
                if kind == 0:
                    cv2.circle(mask, (x, y), size, 1, -1)
                else:
                    cv2.rectangle(mask, (x - size, y - size), (x + size, y + size // 2), 1, -1)
                label[mask > 0], ids[mask > 0] = kind + 1, number
                picture[mask > 0] = np.array(COLOURS[kind], np.uint8)
            both = np.stack([label, ids, np.zeros_like(ids)], -1)
            for place, pixels in {"images": picture, "labels": label, "instances": ids, "annotations": both}.items():
                write_picture(raw / split / place / f"{row:02}.png", pixels)


def pack_discs(raw: Path, out: Path) -> None:
    """Pack these folders, each picture with its own size."""
    places = {name: f"{{split}}/{name}s/{{key}}.png" for name in ("image", "label", "instance")}
    ids = {"name": "instance", "kind": "ids", "from": places["instance"]}
    classes = ["background", *NAMES]
    build_pack(
        raw, out, size="native", labels="index", image=places["image"], label=places["label"], classes=classes,
        fields=[ids],
    )  # fmt: skip
