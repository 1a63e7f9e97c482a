"""Raw files through OpenCV, with one thread in each worker: more threads would wait for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2

from bench.libraries import Loaders
from bench.libraries.raw import decoded, link

write = link


def loaders(out: Path) -> Loaders:
    return decoded(out, read)


def read(path: Path) -> Any:
    cv2.setNumThreads(0)
    return cv2.imread(str(path), cv2.IMREAD_COLOR_RGB if path.parent.name == "images" else cv2.IMREAD_UNCHANGED)
