"""Volumes of several channels next to a plain loop that unpacks them, and predictions next to rasterio, in turn.

    tools/run bench.places [--cases 4] [--side 20000] [--rounds 5]

A case has four NIfTI files of 240x240x155 numbers of 16 bits and a label, each compressed by gzip, as BraTS has them.
The loop unpacks each file with zlib-ng and saves the case as .npy, a thread for each core. The prediction is a map of
eight classes, given in stripes of 512 rows; both programs write tiles of 256 pixels, compressed by deflate at level 6
with a thread for each core. The ratios are of medians.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import rasterio
from drills.volumes import nifti
from numpy.typing import NDArray
from program import parser
from zlib_ng import zlib_ng

from packer import build_pack
from readers import PredictionFile
from readers.contract.place import GEO, Place, System
from readers.machine import usable_cores

SIDES, CHANNELS, HEAD = (155, 240, 240), 4, 352
STRIPE, TILE, LEVEL = 512, 256, 6


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--cases", type=int, default=4)
    asked.add_argument("--side", type=int, default=20_000)
    asked.add_argument("--rounds", type=int, default=5)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        stripe = classes(options.side)
        ours, theirs = in_turn(
            options.rounds,
            lambda: write_ours(root / "a.tif", stripe, options.side),
            lambda: write_theirs(root / "b.tif", stripe, options.side),
        )
        ours_mib, theirs_mib = ((root / name).stat().st_size >> 20 for name in ("a.tif", "b.tif"))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"a map of {options.side}x{options.side}: {ours:.2f} s, {ours_mib} MiB, within {memory} MiB of memory")
        print(f"rasterio: {theirs:.2f} s, {theirs_mib} MiB; of rasterio: {theirs / ours:.2f}")
        make_cases(root / "raw", options.cases)
        builds: list[float] = []

        def build() -> None:
            shutil.rmtree(root / "out", ignore_errors=True)
            summary = build_pack(root / "raw", root / "out", volumes=True, classes="2", labels="index")
            builds.append(summary.stages["build"])

        def loop() -> None:
            with ThreadPoolExecutor(usable_cores()) as threads:
                list(threads.map(lambda case: unpack(root, case), range(options.cases)))

        loops, commands = in_turn(options.rounds, loop, build)
        print(f"{options.cases} cases of {CHANNELS} channels: loop {loops:.2f} s, build {commands:.2f} s")
        print(f"of the loop: the build {loops / commands:.2f}, its shards {loops / median(builds):.2f}")


def in_turn(rounds: int, first: Callable[[], None], second: Callable[[], None]) -> tuple[float, float]:
    """Return the median seconds of two functions, which run in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, seconds in zip((first, second), times, strict=True):
            started = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - started)
    return median(times[0]), median(times[1])


def make_cases(raw: Path, cases: int) -> None:
    """Write cases whose head is noise in an empty frame."""
    random = np.random.default_rng(0)
    for folder in ("imagesTr", "labelsTr"):
        (raw / folder).mkdir(parents=True)
    for case in range(cases):
        for channel in range(CHANNELS):
            numbers = np.zeros(SIDES, np.int16)
            numbers[10:145, 40:200, 40:200] = random.normal(500, 90, (135, 160, 160)).astype(np.int16)
            write_packed(raw / f"imagesTr/c{case}_{channel:04}.nii.gz", numbers)
        label = np.zeros(SIDES, np.uint8)
        label[40:100, 90:160, 80:150] = 1
        write_packed(raw / f"labelsTr/c{case}.nii.gz", label)


def write_packed(path: Path, numbers: NDArray[Any]) -> None:
    packing = zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, 31)
    path.write_bytes(packing.compress(nifti(numbers)) + packing.flush())


def unpack(root: Path, case: int) -> None:
    """Unpack the files of a case, and save them."""
    image = np.empty((CHANNELS, *SIDES), np.int16)
    for channel in range(CHANNELS):
        data = zlib_ng.decompress((root / f"raw/imagesTr/c{case}_{channel:04}.nii.gz").read_bytes(), wbits=31)
        image[channel] = np.frombuffer(data, np.int16, offset=HEAD).reshape(SIDES)
    label = zlib_ng.decompress((root / f"raw/labelsTr/c{case}.nii.gz").read_bytes(), wbits=31)
    np.save(root / f"{case}-image.npy", image)
    np.save(root / f"{case}-label.npy", np.frombuffer(label, np.uint8, offset=HEAD).reshape(SIDES))


def classes(side: int) -> NDArray[np.uint8]:
    """Return a stripe of patches of classes with rough edges."""
    random = np.random.default_rng(0)
    patches = random.integers(0, 8, (STRIPE // 64, side // 64 + 2)).astype(np.uint8).repeat(64, 0).repeat(64, 1)
    return np.stack(
        [np.roll(line, shift)[:side] for line, shift in zip(patches, random.integers(0, 9, STRIPE), strict=True)]
    )


def write_ours(path: Path, stripe: NDArray[np.uint8], side: int) -> None:
    place = Place(System(GEO, "EPSG:32633"), (10.0, 0.0, 5e5, 0.0, -10.0, 4.6e6))
    with PredictionFile(path, (side, side), np.uint8, place) as file:
        for top in range(0, side, STRIPE):
            file.write(stripe[: side - top], top)


def write_theirs(path: Path, stripe: NDArray[np.uint8], side: int) -> None:
    form = {"tiled": True, "blockxsize": TILE, "blockysize": TILE, "compress": "deflate", "zlevel": LEVEL}
    shape = {"width": side, "height": side, "count": 1, "dtype": "uint8", "num_threads": usable_cores()}
    where = {"crs": "EPSG:32633", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 4.6e6)}
    with rasterio.open(path, "w", driver="GTiff", **form, **shape, **where) as file:
        for top in range(0, side, STRIPE):
            rows = stripe[: side - top]
            file.write(rows[None], window=rasterio.windows.Window(0, top, side, len(rows)))
