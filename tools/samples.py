"""Draw the sample data set, data_samples/raw, and count its pairs and pixels in data_samples/COUNTS.md.

    tools/run samples [--out FOLDER]

The bytes are the same every time with the same OpenCV and numpy. Other versions may encode or round differently.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from program import SAMPLES, parser
from scenes.draw import draw_scene
from scenes.pictures import CLASS_TABLE, JPEG, SMALL_PNG, read_picture, write_class_table, write_picture
from scenes.street import CLASSES

SPLITS = {"train": range(18), "val": range(18, 24)}
"""The scenes of each split. The number of a scene is the seed that it is drawn from."""
COMMAND = "tools/run samples"


def write_scene(out: Path, split: str, number: int) -> None:
    """Draw one pair. Every other image is a JPEG; labels are always PNG."""
    image, label = draw_scene(number)
    colours = np.array(list(CLASSES.values()), np.uint8)
    suffix, options = (".jpg", JPEG) if number % 2 else (".png", SMALL_PNG)
    write_picture(out / split / "images" / f"scene_{number:03}{suffix}", image, options)
    write_picture(out / split / "labels" / f"scene_{number:03}.png", colours[label], SMALL_PNG)


def count_pixels(paths: list[Path]) -> Counter[str]:
    """Count the pixels of each class in label files. A colour that is in no class is an error."""
    names = {colour: name for name, colour in CLASSES.items()}
    pixels: Counter[str] = Counter()
    for path in paths:
        colours, counts = np.unique(read_picture(path).reshape(-1, 3), axis=0, return_counts=True)
        for colour, count in zip(colours.tolist(), counts.tolist(), strict=True):
            pixels[names[tuple(colour)]] += count
    return pixels


def split_row(folder: Path) -> str:
    """Return a table row: the pairs of a split, and its images by file type and size."""
    images, labels = sorted(folder.glob("images/*")), sorted(folder.glob("labels/*"))
    if [path.stem for path in images] != [path.stem for path in labels]:
        raise ValueError(f"{folder}: images and labels do not form pairs")
    kinds = Counter(path.suffix for path in images)
    sizes = sorted({"{1} x {0}".format(*read_picture(path).shape) for path in (*images, *labels)})
    return f"| {folder.name} | {len(images)} | {kinds['.png']} | {kinds['.jpg']} | {', '.join(sizes)} |"


def counts_page(out: Path) -> str:
    """Return the page, counted in the files on disk."""
    pixels = {split: count_pixels(sorted((out / split / "labels").glob("*.png"))) for split in SPLITS}
    voids = {split: sum("void" in count_pixels([p]) for p in (out / split / "labels").glob("*")) for split in SPLITS}
    lines = [
        "# Counts of `raw/`",
        "",
        f"Written by `{COMMAND}`, which draws the folder and counts by reading its files back.",
        "",
        "| split | pairs | PNG images | JPEG images | width x height |",
        "|---|--:|--:|--:|---|",
        *(split_row(out / split) for split in SPLITS),
        "",
        f"Labels are RGB PNG in the {len(CLASSES)} colours of `raw/class_dict.csv`; no other colour occurs.",
        f"`void` is the class of unlabelled pixels. It occurs in {voids['train']} labels of train, "
        f"{voids['val']} of val.",
        "",
        "| class | label pixels, train | label pixels, val |",
        "|---|--:|--:|",
        *(f"| {name} | {pixels['train'][name]:,} | {pixels['val'][name]:,} |" for name in CLASSES),
        f"| all | {pixels['train'].total():,} | {pixels['val'].total():,} |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", type=Path, default=SAMPLES, metavar="FOLDER", help="default: data_samples/raw")
    out: Path = options.parse_args().out
    for split, numbers in SPLITS.items():
        for number in numbers:
            write_scene(out, split, number)
    write_class_table(out / CLASS_TABLE, CLASSES.items())
    (out.parent / "COUNTS.md").write_text(counts_page(out), encoding="utf-8")
