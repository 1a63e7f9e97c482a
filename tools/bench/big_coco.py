"""Make a large file of COCO, list its annotations as a plan does, and measure time and memory.

    tools/run bench.big_coco [--annotations 1000000] [--pictures 100000] [--points 28] [--keep FILE]

An annotation has a polygon, a box and an area, as those of COCO: 500 bytes with 28 points. Prints the size of the file,
the seconds that it took to write and to list, the seconds to read a tenth of the pictures again from their places, and
the most memory that the process held before and after the listing.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from program import parser
from tables import line

from packer.annotations.list_pictures import index_of

TOGETHER = 1000
CATEGORIES = 80


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--annotations", type=int, default=1_000_000)
    options.add_argument("--pictures", type=int, default=100_000)
    options.add_argument("--points", type=int, default=28, help="points of a polygon")
    options.add_argument("--keep", type=Path, help="write the file here, and keep it")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = chosen.keep or Path(temporary) / "instances.json"
        seconds = [time.monotonic()]
        write(path, chosen.pictures, chosen.annotations, chosen.points)
        seconds.append(time.monotonic())
        before = most_memory()
        names: list[str] = []
        with path.open("rb") as file:
            index = index_of(file, names)
            seconds.append(time.monotonic())
            listed = most_memory()
            found = sum(len(index.read(file, name)[0].annotations) for name in names[::10])
        seconds.append(time.monotonic())
        times = [f"{later - earlier:.1f} s" for earlier, later in pairwise(seconds)]
        widths = (8, 12, 10, 10, 10, 24, 16)
        print(line(("MB", "annotations", "pictures", "write", "list", "read a tenth again", "memory, MiB"), widths))
        size = round(path.stat().st_size / 1e6)
        read = f"{times[2]} ({found})"
        print(line((size, sum(index.counts.values()), len(index), *times[:2], read, f"{before} → {listed}"), widths))


def write(path: Path, pictures: int, annotations: int, points: int) -> None:
    """Write a file of COCO whose annotations lie in any order of pictures, before its images and categories."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"year": 2017}, "annotations": [')
        for first in range(0, annotations, TOGETHER):
            count = min(TOGETHER, annotations - first)
            centres = rng.uniform(50, 400, (count, 1, 2))
            rings = np.round(centres + rng.uniform(-40, 40, (count, points, 2)), 2).reshape(count, -1).tolist()
            owners, categories = rng.integers(0, pictures, count), rng.integers(0, CATEGORIES, count)
            items = (
                {
                    "segmentation": [rings[i]],
                    "area": 702.1,
                    "iscrowd": 0,
                    "image_id": int(owners[i]),
                    "bbox": [473.07, 395.93, 38.65, 28.67],
                    "category_id": int(categories[i]),
                    "id": first + i,
                }
                for i in range(count)
            )
            file.write(("," if first else "") + ",".join(map(json.dumps, items)))
        file.write('], "images": [')
        named = ({"id": i, "file_name": f"{i:012}.jpg", "height": 480, "width": 640} for i in range(pictures))
        file.write(",".join(map(json.dumps, named)))
        named = ({"id": i, "name": f"class {i}", "supercategory": "thing"} for i in range(CATEGORIES))
        file.write(f'], "categories": [{",".join(map(json.dumps, named))}]}}')


def most_memory() -> int:
    """Return the most MiB that this process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
