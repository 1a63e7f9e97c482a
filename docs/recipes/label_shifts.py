"""Find labels that are shifted against their picture, without a model: the edges of both are compared at every shift.

python docs/recipes/label_shifts.py PACK                     # then sort by it:
packer view PACK --scores PACK-shifts.csv
"""

import csv
import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from readers import open_dataset

REACH, FEWEST = 12, 50  # pixels in each direction; labels with fewer edge pixels are not judged


def edges(picture: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return how steep a picture (C,H,W) is at each pixel, in its steepest band."""
    bands = [cv2.GaussianBlur(band, (0, 0), 1) for band in picture.astype(np.float32)]
    return np.log1p([np.hypot(cv2.Sobel(band, -1, 1, 0), cv2.Sobel(band, -1, 0, 1)) for band in bands]).max(0)


def shift(picture: NDArray[np.floating], label: NDArray[np.integer]) -> tuple[float, int, int]:
    """Return how well the edges fit, at most 1; and where the label lies from where they fit best: down and right."""
    outlines = np.zeros(label.shape, np.float32)
    outlines[1:] += label[1:] != label[:-1]
    outlines[:, 1:] += label[:, 1:] != label[:, :-1]
    inside = outlines[REACH:-REACH, REACH:-REACH].clip(0, 1)
    if inside.sum() < FEWEST:
        return 1.0, 0, 0
    fits = cv2.GaussianBlur(cv2.matchTemplate(edges(picture), inside, cv2.TM_CCORR), (0, 0), 1)
    best, (x, y) = cv2.minMaxLoc(fits)[1::2]
    return float((fits[REACH, REACH] - fits.mean()) / max(best - fits.mean(), 1e-6)), REACH - y, REACH - x


if __name__ == "__main__":
    pack = Path(sys.argv[1])
    data = open_dataset(pack, split="all", label="index")
    names = (f"{split.name}/" for split in data.manifest.splits for _ in range(split.rows))
    with pack.with_name(f"{pack.name}-shifts.csv").open("w", newline="") as file:
        for row, split in enumerate(names):
            score, down, right = shift(data[row].image.numpy(), data[row].label.numpy())
            csv.writer(file).writerow([split + data.key(row), score])
            if score < 0.5 and max(abs(down), abs(right)) > 2:
                print(f"{split}{data.key(row)}: fit {score:.2f}, {down:+} pixels down, {right:+} right")
