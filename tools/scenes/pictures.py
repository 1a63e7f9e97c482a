"""Picture files and class tables, written and read as RGB."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from scenes.street import Pixels

JPEG = (cv2.IMWRITE_JPEG_QUALITY, 90)
SMALL_PNG = (cv2.IMWRITE_PNG_COMPRESSION, 9)
CLASS_TABLE = "class_dict.csv"
LONG_AGO = 1_500_000_000
"""A time of writing, in seconds since 1970. A build distrusts the time of a file that was just written."""


def write_picture(path: Path, pixels: NDArray[Any], options: Sequence[int] = ()) -> None:
    """Encode RGB or gray pixels in the file type of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = np.ascontiguousarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels)  # OpenCV takes BGR
    encoded, data = cv2.imencode(path.suffix, stored, options)
    if not encoded:
        raise ValueError(f"{path}: cannot be encoded")
    path.write_bytes(data.tobytes())


def read_picture(path: Path) -> Pixels:
    """Decode a file to RGB pixels."""
    pixels = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR_RGB)
    if pixels is None:
        raise ValueError(f"{path}: cannot be decoded")
    return np.asarray(pixels, np.uint8)


def write_class_table(path: Path, classes: Iterable[tuple[str, Sequence[int]]]) -> None:
    """Write the names and colours of classes as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["name", "r", "g", "b"])
        rows.writerows([name, *colour] for name, colour in classes)
