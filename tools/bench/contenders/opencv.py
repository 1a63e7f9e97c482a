"""Raw files through OpenCV. One thread in each worker: more would only wait for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2

from bench.contenders import Ways
from bench.contenders.raw import decoded, link

write = link


def ways(out: Path) -> Ways:
    return decoded(out, read)


def read(path: Path) -> Any:
    cv2.setNumThreads(0)
    return cv2.imread(str(path), cv2.IMREAD_COLOR_RGB if path.parent.name == "images" else cv2.IMREAD_UNCHANGED)
