"""Make the golden files: a tiny raw set and its packs, committed once per version of the format.

They prove that a pack written by an earlier release still opens. So they are made anew only together with a change of
FORMAT.md: `python tools/make_golden.py --replace`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.build import build
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.workers import open_engine
from readers.contract.manifest import STORAGES

GOLDEN = Path(__file__).resolve().parent.parent / "data_samples" / "golden"
SPLITS = {"train": 5, "val": 2}
HEIGHT, WIDTH = 5, 7
CLASSES = (("sky", (70, 130, 180)), ("road", (128, 64, 128)), ("void", (0, 0, 0)))


def golden_image(number: int) -> NDArray[np.uint8]:
    """An image that a formula gives, so that a test needs no second file to know it."""
    rows, columns, channels = np.indices((HEIGHT, WIDTH, 3))
    return np.asarray((37 * number + 11 * rows + 5 * columns + 101 * channels) % 256, np.uint8)


def golden_label(number: int) -> NDArray[np.uint8]:
    """The class of every pixel: 0, 1, or 2 for what is ignored."""
    rows, columns = np.indices((HEIGHT, WIDTH))
    return np.asarray((number + rows * columns) % 3, np.uint8)


def write_raw(raw: Path) -> None:
    """Write the raw pairs: `split/images` and `split/labels`."""
    colours = np.array([colour for _, colour in CLASSES], np.uint8)
    for split, count in SPLITS.items():
        for kind in ("images", "labels"):
            (raw / split / kind).mkdir(parents=True)
        for number in range(count):
            pixels = {"images": golden_image(number), "labels": colours[golden_label(number)]}
            for kind, rgb in pixels.items():
                cv2.imwrite(str(raw / split / kind / f"{number}.png"), np.ascontiguousarray(rgb[..., ::-1]))
    rows = [f"{name},{r},{g},{b}" for name, (r, g, b) in CLASSES]
    (raw / "class_dict.csv").write_text("\n".join(["name,r,g,b", *rows]) + "\n")


def request(raw: Path, out: Path, storage: str, labels: str) -> Request:
    """How the golden packs are made: several shards, one class ignored."""
    return Request(raw=raw, out=out, storage=storage, labels=labels, ignore=("void",), shard_bytes=400)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replace", action="store_true", help="make them anew, with a change of FORMAT.md")
    if GOLDEN.exists() and not parser.parse_args().replace:
        parser.error(f"{GOLDEN} is there; it changes only with FORMAT.md (--replace)")
    shutil.rmtree(GOLDEN, ignore_errors=True)
    write_raw(GOLDEN / "raw")
    for storage in STORAGES:
        for labels in ("onehot", "index"):
            out = GOLDEN / f"{storage}-{labels}"
            plan = make_plan(request(GOLDEN / "raw", out, storage, labels))
            with open_engine(1, plan.request.task_timeout) as engine:
                summary = build(plan, lambda done: None, engine)
            print(f"{out}: {summary.rows} rows in {summary.manifest.shards} shards")


if __name__ == "__main__":
    main()
