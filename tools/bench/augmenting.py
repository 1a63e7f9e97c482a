"""The cost of augmenting on the CPU: a recipe of ours, its parts, and other libraries that do the same.

    pip install -c docs/recipes/constraints.txt '.[recipes,recipes-torchvision]'
    tools/run bench.augmenting [--rounds 5] [--seconds 1.5] [--only "holds;OpenCV"] [--rows 64] [--keep FOLDER]

Pictures of 1024x2048 become windows of 512x1024 bytes, with labels. In each round all take turns, forwards and then
backwards, each for some seconds. A ratio is that of the rates in the same round, and the median of the rounds counts.
Each must first deliver windows of the right shape, with classes of the rows in the places of their pixels. A library
that is missing stays in the table, with the reason. Then volumes: windows of 128x128x128 of 16 bits.
For a PyTorch without CUDA, put tests/cpu_torchvision on PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads of PyTorch that spin would slow down the others
import numpy as np
import torch
from program import parser
from tables import aligned

from bench import augmenting_peers as peers
from bench.augmenting_peers import BATCH, CHANGE, SCALE, WINDOW
from bench.augmenting_rows import CLASSES, Pictures, pictures, volumes
from bench.machine import machine, versions
from bench.streams import Batches, Stream, table, take_turns
from readers import Colour, RandomCrop, SegDataset

PACKAGES = ("torch", "torchvision", "kornia", "albumentations", "nvidia-dali-cuda120", "opencv-python", "numpy")
PLAIN, WHOLE = "crop, flip", "scale, crop, flip, colour"
PATCH, VOLUMES_A_BATCH = (128, 128, 128), 4
MEMORY, NEEDED = Path("/dev/shm"), 4 << 30
"""The folder of the rows, and the free bytes that it must have; or else they are on the disk."""


def loaded(data: SegDataset, batch: int = BATCH, **options: Any) -> Batches:
    """Return endless batches of our loader."""
    loader = data.loader(batch, shuffle=True, **options)
    return chain.from_iterable(iter(lambda: loader, None))


def ours(data: SegDataset) -> list[Stream]:
    """Return our recipe and its parts."""
    colour = Colour(CHANGE, CHANGE, CHANGE)
    scaled = RandomCrop(WINDOW, scale=SCALE)
    held: dict[str | int, float] = {CLASSES - 2: 0.5}
    every: dict[str, Any] = {"crop": scaled, "colour": colour}
    half: dict[str, Any] = {"normalize": True, "dtype": torch.float16}
    recipes: list[tuple[str, str, float | None, dict[str, Any]]] = [
        (PLAIN, PLAIN, None, {"crop": WINDOW}),
        ("crop, flip, holds", PLAIN, 0.98, {"crop": RandomCrop(WINDOW, holds=held)}),
        ("crop, flip, colour", PLAIN, 0.9, {"crop": WINDOW, "colour": colour}),
        ("scale, crop, flip", PLAIN, None, {"crop": scaled}),
        (WHOLE, PLAIN, 0.6, every),
        (f"{WHOLE}, holds", WHOLE, 0.98, {**every, "crop": RandomCrop(WINDOW, scale=SCALE, holds=held)}),
        (f"{WHOLE}, normalised float16", PLAIN, None, {**every, **half}),
    ]
    return [
        Stream(name, partial(loaded, data, flip=True, **options), base, goal, ahead=6)
        for name, base, goal, options in recipes
    ]


def others(rows: Pictures) -> list[Stream]:
    """Return the other libraries, those that fork first: a fork does not copy threads."""
    found: list[tuple[str, Callable[[Pictures], Batches], float | None, int]] = [
        ("torchvision v2, 2 workers", peers.torchvision_workers, None, 5),
        ("Albumentations, 2 workers", peers.albumentations_workers, 2, 5),
        ("torchvision v2, on the batch", peers.torchvision_batches, 5, 1),
        ("torchvision v2, on the batch, 1 thread", partial(peers.in_one_thread, peers.torchvision_batches), 5, 1),
        ("Kornia, on the batch", peers.kornia_batches, 5, 1),
        ("Kornia, on the batch, 1 thread", partial(peers.in_one_thread, peers.kornia_batches), 5, 1),
        ("DALI, CPU, 2 threads", peers.dali_batches, 2, 4),
        ("OpenCV by hand, 2 threads", peers.opencv_threads, None, 2),
    ]
    return [Stream(name, partial(make, rows), WHOLE, goal, True, ahead) for name, make, goal, ahead in found]


def of_volumes(data: SegDataset) -> list[Stream]:
    """Return plain windows of volumes, and windows over the foreground that are flipped along each axis."""
    over = RandomCrop(PATCH, foreground=1 / 3)
    recipes: list[tuple[str, dict[str, Any]]] = [
        ("volumes, crop", {"crop": PATCH}),
        ("volumes, crop, flip", {"crop": PATCH, "flip": "all"}),
        ("volumes, crop, foreground", {"crop": over}),
        ("volumes, crop, flip, foreground", {"crop": over, "flip": "all"}),
    ]
    plain = recipes[0][0]
    return [
        Stream(name, partial(loaded, data, VOLUMES_A_BATCH, **options), plain, 0.9 if name != plain else None, ahead=6)
        for name, options in recipes
    ]


def check_pictures(images: Any, labels: Any) -> str:
    """Return what is wrong with a batch: a picture is brighter where its class is higher."""
    if tuple(images.shape) != (BATCH, 3, *WINDOW) or tuple(labels.shape) != (BATCH, *WINDOW):
        return f"delivers {tuple(images.shape)} and {tuple(labels.shape)}"
    gray, classes = images[..., ::8, ::8].double().mean(1).flatten(1), labels[..., ::8, ::8].flatten(1).double()
    if not set(classes.unique().tolist()) <= set(range(CLASSES)):
        return f"delivers classes that no row has: {classes.unique().tolist()}"
    alike = [float(np.corrcoef(*pair)[0, 1]) for pair in zip(gray, classes, strict=True) if pair[1].std() > 0.5]
    return "" if min(alike, default=1) > 0.6 else f"has labels that do not fit their pictures: correlations {alike}"


def check_volumes(images: Any, labels: Any) -> str:
    """Return what is wrong with a batch: a volume is brighter in the foreground."""
    if tuple(images.shape) != (VOLUMES_A_BATCH, 1, *PATCH) or tuple(labels.shape) != (VOLUMES_A_BATCH, *PATCH):
        return f"delivers {tuple(images.shape)} and {tuple(labels.shape)}"
    numbers, inside = np.asarray(images[:, 0]), np.asarray(labels)
    fits = inside.max() <= 1 and (not inside.any() or numbers[inside == 1].mean() > numbers[inside == 0].mean() + 200)
    return "" if fits else "has labels that do not fit their volumes"


def main() -> None:
    chosen = arguments()
    warnings.simplefilter("ignore")  # PyTorch warns about mapped memory that is read-only
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > NEEDED
    with tempfile.TemporaryDirectory(dir=MEMORY if has_room else None) as temporary:
        root = chosen.keep or Path(temporary)
        print(machine(), versions(PACKAGES), f"load {os.getloadavg()[0]:.1f}", sep="\n", flush=True)
        if chosen.only != "volumes":
            rows = pictures(root, chosen.rows)
            run(chosen, [*others(rows), *ours(rows.data)], check_pictures)
        if chosen.only in ("", "volumes"):
            run(chosen, of_volumes(volumes(root)), check_volumes)


def arguments() -> Namespace:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=1.5, help="of each turn")
    options.add_argument("--only", default="", help="volumes, or parts of names, with semicolons between them")
    options.add_argument("--rows", type=int, default=64)
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the rows there and keep them")
    return options.parse_args()


def run(chosen: Namespace, streams: list[Stream], check: Any) -> None:
    """Measure those that are asked for, and print their table."""
    needed = {stream.name for stream in streams if any(part in stream.name for part in chosen.only.split(";"))}
    while divisors := {stream.base for stream in streams if stream.name in needed} - needed:
        needed |= divisors
    streams = [stream for stream in streams if stream.name in needed]
    take_turns(streams, check, chosen.rounds, chosen.seconds)
    if streams:
        print("\n".join(["", *aligned(list(table(streams)))]), flush=True)
