"""Raw folders of street pictures as a camera gives them: 960x720, images as JPEG, labels as PNG."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from program import SAMPLES

from scenes.draw import draw_scene
from scenes.pictures import CLASS_TABLE, JPEG, LONG_AGO, SMALL_PNG, read_picture, write_class_table, write_picture
from scenes.shapes import SHAPES, Shape
from scenes.street import CLASSES, Pixels

STREET = SHAPES["street"]
HEIGHT, WIDTH = STREET.height, STREET.width
DISTINCT = 24
"""Pictures of a linked folder that are drawn; the others are links to them."""


def make_linked_streets(raw: Path, pairs: int, colours: bool = False, shape: Shape = STREET) -> None:
    """Make a folder of DISTINCT drawn scenes. Labels are class numbers, or colours with a class table."""
    for kind in ("images", "labels"):
        (raw / kind).mkdir(parents=True)
    if colours:
        write_class_table(raw / CLASS_TABLE, CLASSES.items())
    for number in range(pairs):
        paths = image_path(raw, number, shape), label_path(raw, number)
        if number < DISTINCT:
            _draw(number, *paths, colours, (shape.width, shape.height))
            continue
        first = number % DISTINCT
        for path, drawn in zip(paths, (image_path(raw, first, shape), label_path(raw, first)), strict=True):
            os.link(drawn, path)


def image_path(raw: Path, number: int, shape: Shape = STREET) -> Path:
    return raw / "images" / f"{number:06}{shape.suffix}"


def label_path(raw: Path, number: int) -> Path:
    return raw / "labels" / f"{number:06}.png"


def _draw(seed: int, image_file: Path, label_file: Path, colours: bool, size: tuple[int, int]) -> None:
    """Draw a scene, which is smaller than the picture, and enlarge it."""
    image, label = draw_scene(seed)
    noisy = _with_noise(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.random.default_rng(seed))
    numbers: Pixels = cv2.resize(label.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)  # type: ignore[assignment]
    numbers = cv2.medianBlur(numbers, 5)  # type: ignore[assignment]
    write_picture(image_file, noisy, JPEG)
    write_picture(label_file, np.array(list(CLASSES.values()), np.uint8)[numbers] if colours else numbers)
    for path in (image_file, label_file):
        os.utime(path, (LONG_AGO, LONG_AGO))


def make_varied_streets(raw: Path, pictures: int) -> None:
    """Make a folder of windows of the sample scenes, no two alike. Keep a folder that an earlier call has finished."""
    drawn = [(read_picture(path), read_picture(_label_of(path))) for path in sorted(SAMPLES.glob("*/images/*"))]
    if (raw / CLASS_TABLE).is_file() and len(list(raw.glob("train/labels/*.png"))) == pictures:
        return
    if raw.exists():
        raise SystemExit(f"{raw}: is not the folder of {pictures} scenes that an earlier run made; delete it")

    def make(number: int) -> None:
        image, label = _window(number, *drawn[number % len(drawn)])
        write_picture(raw / "train" / "images" / f"street_{number:05}.jpg", image, JPEG)
        write_picture(raw / "train" / "labels" / f"street_{number:05}.png", label, SMALL_PNG)

    with ThreadPoolExecutor() as pool:
        list(pool.map(make, range(pictures)))
    write_class_table(raw / CLASS_TABLE, CLASSES.items())  # last: it marks the folder as finished


def _label_of(image: Path) -> Path:
    return image.parents[1] / "labels" / f"{image.stem}.png"


def _window(number: int, image: Pixels, label: Pixels) -> tuple[Pixels, Pixels]:
    """Return a random part of a scene, perhaps mirrored, at a camera's size."""
    dice = np.random.default_rng(number)
    tall = int(dice.integers(160, image.shape[0] + 1))
    wide = tall * WIDTH // HEIGHT
    top, left = (
        int(dice.integers(0, whole - part + 1)) for whole, part in zip(image.shape, (tall, wide), strict=False)
    )
    step = 1 - 2 * int(dice.integers(2))
    window = np.s_[top : top + tall, left : left + wide]
    large = cv2.resize(image[window][:, ::step], (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    noisy = _with_noise(large, dice)
    colours = cv2.resize(label[window][:, ::step], (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST)
    return noisy, np.asarray(colours, np.uint8)


def _with_noise(image: NDArray[Any], dice: np.random.Generator) -> Pixels:
    """Add the noise of a sensor, which makes an enlarged picture as costly to decode as a camera's."""
    noisy: Pixels = np.clip(image + dice.normal(0, 3, image.shape), 0, 255).astype(np.uint8)
    return noisy
