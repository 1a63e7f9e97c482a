"""A raw folder of its own: 960x720 streets, no two alike, JPEG at a camera's quality with labels of PNG in colours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from make_samples import read_picture, write_class_table, write_picture
from street import Pixels

HEIGHT, WIDTH = 720, 960
SAMPLES = Path(__file__).resolve().parents[2] / "data_samples" / "raw"
TABLE = "class_dict.csv"


def make_scenes(raw: Path, pictures: int) -> None:
    """Make the folder, where that was not done before; the class table is written last."""
    drawn = [(read_picture(path), read_picture(_label(path))) for path in sorted(SAMPLES.glob("*/images/*"))]
    if (raw / TABLE).is_file() and len(list(raw.glob("train/labels/*.png"))) == pictures:
        return
    if raw.exists():
        raise SystemExit(f"{raw}: holds something else than {pictures} scenes of an earlier run; delete it")

    def make(number: int) -> None:
        image, label = _seen_anew(number, *drawn[number % len(drawn)])
        write_picture(raw / "train" / "images" / f"street_{number:05}.jpg", image)
        write_picture(raw / "train" / "labels" / f"street_{number:05}.png", label)

    with ThreadPoolExecutor() as pool:
        list(pool.map(make, range(pictures)))
    write_class_table(raw / TABLE)


def _label(image: Path) -> Path:
    return image.parents[1] / "labels" / f"{image.stem}.png"


def _seen_anew(number: int, image: Pixels, label: Pixels) -> tuple[Pixels, Pixels]:
    """A part of a sample scene, perhaps mirrored, enlarged to a camera's size, with a sensor's noise."""
    dice = np.random.default_rng(number)
    tall = int(dice.integers(160, image.shape[0] + 1))
    wide = tall * WIDTH // HEIGHT
    top, left = (
        int(dice.integers(0, whole - part + 1)) for whole, part in zip(image.shape, (tall, wide), strict=False)
    )
    step = 1 - 2 * int(dice.integers(2))
    window = np.s_[top : top + tall, left : left + wide]
    large = cv2.resize(image[window][:, ::step], (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    noisy = np.clip(large + dice.normal(0, 3, large.shape), 0, 255).astype(np.uint8)
    colours = cv2.resize(label[window][:, ::step], (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST)
    return noisy, np.asarray(colours, np.uint8)
