"""Paint made outlines with Ultralytics, also those whose holes its converter joins by a bridge, and keep the masks.

tools/run facts.yolo     in an environment with segpack and tools/facts/requirements.txt
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from ultralytics.data.converter import merge_multi_segment
from ultralytics.data.utils import polygon2mask

from facts.made_shapes import polygon
from facts.write_facts import packed, write_facts


def line(random: Random, height: int, width: int) -> str:
    """Return a line of a labels file, some with a ring that is joined to the first one."""
    digits = random.choice([0, 0, 1, 3])
    rings = [polygon(random, height, width, digits) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    points = np.concatenate(merge_multi_segment(rings)) if len(rings) > 1 else np.array(rings[0])
    shares = np.clip(points / (width, height), 0, 1)
    return " ".join([str(random.randrange(3)), *(f"{number:.6g}" for number in shares.ravel())])


def mask(text: str, height: int, width: int) -> Any:
    """Paint a line as the data sets of Ultralytics do: in its precision, cut to whole pixels, filled by OpenCV."""
    segment = np.array(text.split()[1:], np.float32).reshape(-1, 2) * np.array([width, height], np.float32)
    return polygon2mask((height, width), [segment.reshape(-1)])


def main() -> None:
    cases = []
    for seed in range(150):
        random = Random(seed)
        height, width = random.randint(8, 60), random.randint(8, 90)
        text = line(random, height, width)
        pixels = np.packbits(mask(text, height, width).astype(bool))
        cases.append({"size": [height, width], "line": text, "mask": packed(pixels)})
    write_facts("yolo", ["ultralytics", "opencv-python"], cases)
