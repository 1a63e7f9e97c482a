"""Make the golden files: a tiny raw folder and its packs, committed once for each version of the format.

    tools/run golden --replace

They prove that a pack of an earlier release still opens, so they change only together with FORMAT.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
from drills.volumes import nifti
from numpy.typing import NDArray
from program import REPO, parser
from scenes.pictures import CLASS_TABLE, write_class_table

from packer.building import build
from packer.plan.make_plan import make_plan
from packer.plan.request import Request, request_of
from packer.sources.container import Names
from packer.sources.volumes.whole_volumes import WholeVolumes
from packer.workers.run import open_pool
from readers.contract.manifest import STORAGES

GOLDEN = REPO / "data_samples" / "golden"
PACKS = tuple(f"{storage}-{labels}" for storage in STORAGES for labels in ("onehot", "index"))
"""The packs of pictures."""
VOLUMES = "npy-volumes"
"""The pack of volumes. Their images are in tiles."""
SIDES = (3, 17, 18)
SPLITS = {"train": 5, "val": 2}
HEIGHT, WIDTH = 5, 7
CLASSES = (("sky", (70, 130, 180)), ("road", (128, 64, 128)), ("void", (0, 0, 0)))


def golden_image(number: int) -> NDArray[np.uint8]:
    """Return an image that a formula gives, so a test needs no second file."""
    rows, columns, channels = np.indices((HEIGHT, WIDTH, 3))
    return np.asarray((37 * number + 11 * rows + 5 * columns + 101 * channels) % 256, np.uint8)


def golden_label(number: int) -> NDArray[np.uint8]:
    """Return the class of every pixel: 0, 1, or 2, which is ignored."""
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
    write_class_table(raw / CLASS_TABLE, CLASSES)


def request(raw: Path, out: Path, storage: str, labels: str) -> Request:
    """Return the options of a golden pack: several shards, one ignored class."""
    return request_of(raw, out, format=storage, labels=labels, ignore=["void"], shard_size=400)


def golden_volume(number: int) -> NDArray[np.uint8]:
    """Return a volume that a formula gives."""
    slices, rows, columns = np.indices(SIDES)
    return np.asarray((37 * number + 101 * slices + 11 * rows + 5 * columns) % 256, np.uint8)


def golden_classes(number: int) -> NDArray[np.uint8]:
    """Return the class of every pixel of a volume: 0, 1, or 2."""
    slices, rows, columns = np.indices(SIDES)
    return np.asarray((number + slices + rows * columns) % 3, np.uint8)


def volumes_request(raw: Path, out: Path) -> Request:
    """Write two raw volumes, and return the options of their golden pack: two shards."""
    for name, make in (("imagesTr", golden_volume), ("labelsTr", golden_classes)):
        (raw / name).mkdir(parents=True)
        for number in range(2):
            (raw / name / f"{number}.nii").write_bytes(nifti(make(number).T))
    source = WholeVolumes.at(raw, Names())
    return request_of(
        source,
        out,
        volumes=True,
        classes="3",
        labels="index",
        bands="all",
        image_range=(0.0, 255.0),
        encode=["image=tiles:2x16x16"],
        shard_size=1000,
    )


def pack(request: Request) -> None:
    """Build a golden pack."""
    plan = make_plan(request)
    with open_pool(1, request.running.task_timeout) as pool:
        summary = build(plan, lambda done: None, pool)
    print(f"{request.store.out}: {summary.rows} rows in {summary.manifest.shards} shards")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--replace", action="store_true", help="delete them and make new ones")
    if not options.parse_args().replace and GOLDEN.exists():
        options.error(f"{GOLDEN} exists; it changes only together with FORMAT.md, with --replace")
    shutil.rmtree(GOLDEN, ignore_errors=True)
    write_raw(GOLDEN / "raw")
    for name in PACKS:
        pack(request(GOLDEN / "raw", GOLDEN / name, *name.split("-")))
    with TemporaryDirectory() as folder:
        pack(volumes_request(Path(folder), GOLDEN / VOLUMES))
