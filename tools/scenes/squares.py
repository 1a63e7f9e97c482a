"""Street scenes of 512x512, as arrays and as PNG files: the pairs that readers of other libraries are compared with."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from program import SAMPLES

from packer.classes.load import read_table
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pairs.find import find_pairs
from packer.pixels.label_codec import LabelCodec
from scenes.pictures import CLASS_TABLE, write_picture
from scenes.street import Pixels

SIDE = 512


def make_squares(root: Path, count: int) -> tuple[Path, Path, Path]:
    """Make a raw folder of `count` pairs, an array of images and one of labels, unless an earlier call made them."""
    images_file, labels_file = (root / f"{name}_{count}.npy" for name in ("images", "labels"))
    raw, done = root / f"raw_{count}", root / f"drawn_{count}"
    if not done.is_file():
        root.mkdir(parents=True, exist_ok=True)
        shape = (count, SIDE, SIDE)
        images = np.lib.format.open_memmap(images_file, "w+", np.uint8, (*shape, 3))
        labels = np.lib.format.open_memmap(labels_file, "w+", np.uint8, shape)
        scenes = sample_scenes(count)
        for row in range(count):
            # A shift gives each row other pixels at the cost of a copy.
            image, label = (np.roll(part, 7 * row, axis=1) for part in scenes[row % len(scenes)])
            images[row], labels[row] = image, label
            write_picture(raw / "images" / f"{row:05}.png", image)
            write_picture(raw / "labels" / f"{row:05}.png", label)
        done.touch()
    return raw, images_file, labels_file


def sample_scenes(most: int) -> list[tuple[Pixels, Pixels]]:
    """Return the sample scenes at 512x512 with class numbers as labels."""
    codec = LabelCodec(read_table(SAMPLES / CLASS_TABLE))
    scenes = []
    for pair in find_pairs(SAMPLES).pairs[:most]:
        image = decode_image((SAMPLES / pair.image).read_bytes(), ImageRules())
        label = codec.decode((SAMPLES / pair.label).read_bytes()).astype(np.uint8)
        pixels = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        numbers = cv2.resize(label, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        scenes.append((np.asarray(pixels, np.uint8), np.asarray(numbers, np.uint8)))
    return scenes
