"""A raw folder of street pictures as a camera gives them: 960x720, JPEG, labels of PNG as numbers or as colours."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
from make_samples import write_class_table
from scene import draw_scene
from street import CLASSES, Pixels

HEIGHT, WIDTH = 720, 960
DISTINCT = 24
"""Pictures that are drawn; the others are links to them."""


def make_streets(raw: Path, pairs: int, colours: bool = False, height: int = HEIGHT, width: int = WIDTH) -> None:
    """Make the folder with a class table of colours, or for numbers with none."""
    for kind in ("images", "labels"):
        (raw / kind).mkdir(parents=True)
    if colours:
        write_class_table(raw / "class_dict.csv")
    for number in range(pairs):
        paths = image_path(raw, number), label_path(raw, number)
        if number < DISTINCT:
            _draw(number, *paths, colours, (width, height))
            continue
        for path, first in zip(
            paths, (image_path(raw, number % DISTINCT), label_path(raw, number % DISTINCT)), strict=True
        ):
            os.link(first, path)


def image_path(raw: Path, number: int) -> Path:
    return raw / "images" / f"{number:06}.jpg"


def label_path(raw: Path, number: int) -> Path:
    return raw / "labels" / f"{number:06}.png"


def _draw(seed: int, image_file: Path, label_file: Path, colours: bool, size: tuple[int, int]) -> None:
    """Scenes are smaller than the pictures: enlarged, and with a sensor's noise, they are as heavy as a camera's."""
    image, label = draw_scene(seed)
    image = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC)  # type: ignore[assignment]
    noisy = np.clip(image + np.random.default_rng(seed).normal(0, 3, image.shape), 0, 255).astype(np.uint8)
    numbers: Pixels = cv2.resize(label.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)  # type: ignore[assignment]
    numbers = cv2.medianBlur(numbers, 5)  # type: ignore[assignment]
    shown = np.array(list(CLASSES.values()), np.uint8)[numbers][..., ::-1] if colours else numbers
    cv2.imwrite(str(image_file), np.ascontiguousarray(noisy[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, 90])
    cv2.imwrite(str(label_file), np.ascontiguousarray(shown))
    for path in (image_file, label_file):
        os.utime(path, (1_500_000_000, 1_500_000_000))
