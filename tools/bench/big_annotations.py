"""Make a large file of annotations, list it as a plan does, and measure time and memory; also of a whole plan.

    tools/run bench.big_annotations [--format cvat] [--annotations 1000000] [--pictures 100000] [--points 28] [--plan]

An annotation is a polygon: in COCO with its box and area, in any order of pictures; in CVAT and Label Studio with the
others of its picture. Prints the size of the file, the seconds that it took to write and to list, the processor time to
list and to read a tenth of the pictures again from their places, and the most memory before and after the listing.
--plan also runs `packer plan` on the file and its pictures, 640x480 and hard links of four, and prints its seconds, its
processor time, and the most memory of one of its processes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from program import parser
from scenes.pictures import write_picture
from tables import line

from packer.annotations.list_pictures import index_of

TOGETHER = 1000
CATEGORIES, DISTINCT = 80, 4
HEIGHT, WIDTH = 480, 640


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--format", choices=WRITERS, default="coco")
    options.add_argument("--annotations", type=int, default=1_000_000)
    options.add_argument("--pictures", type=int, default=100_000)
    options.add_argument("--points", type=int, default=28, help="points of a polygon")
    options.add_argument("--plan", action="store_true", help="also measure a whole plan")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as raw:
        path = Path(raw) / "annotations"
        started = time.monotonic()
        with path.open("w", encoding="utf-8") as file:
            for text in WRITERS[chosen.format](chosen.pictures, chosen.annotations, chosen.points):
                file.write(text)
        written = time.monotonic() - started
        if chosen.plan:
            whole_plan(path, chosen.pictures)  # first: a process that is started inherits the memory of its parent
        listing(path, written)


def listing(path: Path, written: float) -> None:
    """List a file, read some of it again, and print what that took."""
    before, started, names = most_memory(), (time.monotonic(), time.process_time()), list[str]()
    with path.open("rb") as file:
        index = index_of(file, names)
        listed, after = (time.monotonic() - started[0], time.process_time() - started[1]), most_memory()
        reading = time.process_time()
        found = sum(len(index.read(file, name)[0].annotations) for name in names[::10])
        again = time.process_time() - reading
    widths = (5, 12, 9, 8, 8, 16, 28, 12)
    titles = (
        "MB",
        "annotations",
        "pictures",
        "write",
        "list",
        "processor time",
        "processor time, read a tenth",
        "memory, MiB",
    )
    print(line(titles, widths))
    size, count, read = round(path.stat().st_size / 1e6), sum(index.counts.values()), f"{again:.1f} s ({found})"
    print(
        line(
            (
                size,
                count,
                len(index),
                f"{written:.1f} s",
                *(f"{each:.1f} s" for each in listed),
                read,
                f"{before} → {after}",
            ),
            widths,
        )
    )


def whole_plan(path: Path, pictures: int) -> None:
    """Make the pictures, plan, and print what the plan took."""
    dice = np.random.default_rng(0)
    for number in range(pictures):
        picture = path.parent / "train" / name_of(number)
        if number < DISTINCT:
            write_picture(
                picture, dice.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
            )
        else:
            picture.hardlink_to(picture.with_name(name_of(number % DISTINCT)))
    options = ("--annotations", path.name, "--image", "train/{key}.jpg", "--size", "64x64")
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        command = [sys.executable, "-m", "packer", "plan", "--quiet", *options, str(path.parent), f"{folder}/plan"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    widths = (12, 16, 16)
    print(line(("whole plan", "processor time", "memory, MiB"), widths))
    print(line((f"{seconds:.1f} s", f"{used.ru_utime + used.ru_stime:.1f} s", used.ru_maxrss >> 10), widths))


def name_of(picture: int) -> str:
    return f"{picture:012}.jpg"


def coco(pictures: int, annotations: int, points: int) -> Iterator[str]:
    """Yield a file of COCO whose annotations lie in any order of pictures, before its images and categories."""
    dice = np.random.default_rng(0)
    yield '{"info": {"year": 2017}, "annotations": ['
    for first in range(0, annotations, TOGETHER):
        count = min(TOGETHER, annotations - first)
        rings, owners, categories = (
            rings_of(dice, count, points),
            dice.integers(0, pictures, count),
            of_any(dice, count),
        )
        items = (
            {
                "segmentation": [ring],
                "area": 702.1,
                "iscrowd": 0,
                "image_id": owner,
                "bbox": [473.07, 395.93, 38.65, 28.67],
                "category_id": category,
                "id": first + number,
            }
            for number, (ring, owner, category) in enumerate(zip(rings, owners.tolist(), categories, strict=True))
        )
        yield ("," if first else "") + ",".join(map(json.dumps, items))
    yield '], "images": ['
    named = ({"id": i, "file_name": name_of(i), "height": HEIGHT, "width": WIDTH} for i in range(pictures))
    yield ",".join(map(json.dumps, named))
    named = ({"id": i, "name": f"class {i}", "supercategory": "thing"} for i in range(CATEGORIES))
    yield f'], "categories": [{",".join(map(json.dumps, named))}]}}'


def cvat(pictures: int, annotations: int, points: int) -> Iterator[str]:
    """Yield a file of CVAT for images."""
    dice = np.random.default_rng(0)
    yield '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
    for number, count in enumerate(shares(pictures, annotations)):
        yield f'  <image id="{number}" name="train/{name_of(number)}" width="{WIDTH}" height="{HEIGHT}">\n'
        for ring, category in zip(rings_of(dice, count, points), of_any(dice, count), strict=True):
            pairs = ";".join(f"{x:.2f},{y:.2f}" for x, y in zip(ring[::2], ring[1::2], strict=True))
            yield f'    <polygon label="class {category}" source="manual" occluded="0" points="{pairs}" z_order="0">\n'
            yield "    </polygon>\n"
        yield "  </image>\n"
    yield "</annotations>\n"


def label_studio(pictures: int, annotations: int, points: int) -> Iterator[str]:
    """Yield a list of tasks of Label Studio."""
    dice = np.random.default_rng(0)
    for number, count in enumerate(shares(pictures, annotations)):
        results = [
            {
                "id": f"{number:x}-{which}",
                "type": "polygonlabels",
                "value": {"points": np.reshape(ring, (-1, 2)).tolist(), "polygonlabels": [f"class {category}"]},
                "original_width": WIDTH,
                "original_height": HEIGHT,
                "from_name": "label",
                "to_name": "image",
            }
            for which, (ring, category) in enumerate(
                zip(rings_of(dice, count, points, 90), of_any(dice, count), strict=True)
            )
        ]
        image = f"/data/local-files/?d=train/{name_of(number)}"
        task = {"id": number, "data": {"image": image}, "annotations": [{"id": number, "result": results}]}
        yield ("," if number else "[") + json.dumps(task)
    yield "]"


WRITERS: dict[str, Callable[[int, int, int], Iterator[str]]] = {
    "coco": coco,
    "cvat": cvat,
    "label_studio": label_studio,
}


def shares(pictures: int, annotations: int) -> Iterator[int]:
    """Yield the number of annotations of each picture."""
    return (annotations * (i + 1) // pictures - annotations * i // pictures for i in range(pictures))


def rings_of(dice: np.random.Generator, count: int, points: int, most: float = 440) -> Any:
    """Return random rings of x and y."""
    centres = dice.uniform(most / 9, most * 8 / 9, (count, 1, 2))
    return np.round(centres + dice.uniform(-most / 11, most / 11, (count, points, 2)), 2).reshape(count, -1).tolist()


def of_any(dice: np.random.Generator, count: int) -> Any:
    return dice.integers(0, CATEGORIES, count).tolist()


def most_memory() -> int:
    """Return the most MiB that this process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
