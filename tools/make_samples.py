"""Draws the sample data set, data_samples/raw, and states in data_samples/COUNTS.md what is to be counted in it.

The bytes are the same every time with the same OpenCV and numpy; other versions may encode or round otherwise.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
from scene import draw_scene
from street import CLASSES, HEIGHT, WIDTH, Pixels

SPLITS = {"train": range(18), "val": range(18, 24)}
"""The scenes of each split; a scene's number is the seed that it is drawn from."""
ENCODINGS = {".png": [cv2.IMWRITE_PNG_COMPRESSION, 9], ".jpg": [cv2.IMWRITE_JPEG_QUALITY, 90]}
COMMAND = "python tools/make_samples.py"


def write_picture(path: Path, pixels: Pixels) -> None:
    """Encode RGB pixels as the name of the file says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done, data = cv2.imencode(path.suffix, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), ENCODINGS[path.suffix])
    if not done:
        raise ValueError(f"{path}: cannot be encoded")
    path.write_bytes(data.tobytes())


def read_picture(path: Path) -> Pixels:
    """Decode a file to RGB pixels."""
    pixels = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR_RGB)
    if pixels is None:
        raise ValueError(f"{path}: cannot be decoded")
    return np.asarray(pixels, np.uint8)


def write_scene(out: Path, split: str, number: int) -> None:
    """Draw one pair: every other image is a JPEG, labels are always PNG."""
    image, label = draw_scene(number)
    colours = np.array(list(CLASSES.values()), np.uint8)
    write_picture(out / split / "images" / f"scene_{number:03}{('.png', '.jpg')[number % 2]}", image)
    write_picture(out / split / "labels" / f"scene_{number:03}.png", colours[label])


def write_class_table(path: Path) -> None:
    """The names and colours of the classes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["name", "r", "g", "b"])
        rows.writerows([name, *colour] for name, colour in CLASSES.items())


def count_pixels(paths: list[Path]) -> Counter[str]:
    """How many pixels of the written labels have the colour of each class; any other colour is an error."""
    names = {colour: name for name, colour in CLASSES.items()}
    pixels: Counter[str] = Counter()
    for path in paths:
        colours, counts = np.unique(read_picture(path).reshape(-1, 3), axis=0, return_counts=True)
        for colour, count in zip(colours.tolist(), counts.tolist(), strict=True):
            pixels[names[tuple(colour)]] += count
    return pixels


def split_row(folder: Path) -> str:
    """A table row: pairs of a split, and their images by kind and size."""
    images, labels = sorted(folder.glob("images/*")), sorted(folder.glob("labels/*"))
    if [path.stem for path in images] != [path.stem for path in labels]:
        raise ValueError(f"{folder}: images and labels are no pairs")
    kinds = Counter(path.suffix for path in images)
    sizes = sorted({"{1} x {0}".format(*read_picture(path).shape) for path in (*images, *labels)})
    return f"| {folder.name} | {len(images)} | {kinds['.png']} | {kinds['.jpg']} | {', '.join(sizes)} |"


def counts_page(out: Path) -> str:
    """The page, from what lies on disk and not from what was drawn."""
    pixels = {split: count_pixels(sorted((out / split / "labels").glob("*.png"))) for split in SPLITS}
    voids = {split: sum("void" in count_pixels([p]) for p in (out / split / "labels").glob("*")) for split in SPLITS}
    lines = [
        "# What is to be counted in `raw/`",
        "",
        f"Written by `{COMMAND}`, which draws the folder and counts by reading its files back.",
        "",
        "| split | pairs | PNG images | JPEG images | width x height |",
        "|---|--:|--:|--:|---|",
        *(split_row(out / split) for split in SPLITS),
        "",
        f"Labels are RGB PNG in the {len(CLASSES)} colours of `raw/class_dict.csv`; no other colour occurs.",
        f"`void` is what nobody labelled; it occurs in {voids['train']} labels of train and {voids['val']} of val.",
        "",
        "| class | label pixels, train | label pixels, val |",
        "|---|--:|--:|",
        *(f"| {name} | {pixels['train'][name]:,} | {pixels['val'][name]:,} |" for name in CLASSES),
        f"| all | {pixels['train'].total():,} | {pixels['val'].total():,} |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw, then count."""
    parser = argparse.ArgumentParser(description=f"Draw street scenes of {WIDTH} x {HEIGHT} with exact labels.")
    parser.add_argument("--out", type=Path, default=Path("data_samples/raw"), help="default: %(default)s")
    out: Path = parser.parse_args().out
    for split, numbers in SPLITS.items():
        for number in numbers:
            write_scene(out, split, number)
    write_class_table(out / "class_dict.csv")
    (out.parent / "COUNTS.md").write_text(counts_page(out), encoding="utf-8")


if __name__ == "__main__":
    main()
