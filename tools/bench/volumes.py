"""Windows of 128x128x128 of volumes: our loader next to nibabel, which reads the NIfTI files.

    tools/run bench.volumes --peer ENV/bin/python [--volumes 4] [--seconds 5] [--rounds 3] [--keep FOLDER]

Volumes are 512x512x300 numbers of 16 bits, smooth with noise, each with a label. ENV has nibabel. A peer opens the two
files of a random volume for each window, as a data set does, in one process: whole (`get_fdata()`) and by slicing
`dataobj`, which reads only a part of a file that is not compressed. Everything is warm in memory. Each round runs all
in turn. Ours reads batches of 4 with one thread and with all.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
from drills.volumes import nifti
from numpy.typing import NDArray
from program import parser
from tables import aligned

from bench.run_build import run_build
from readers import open_dataset
from readers.machine import usable_cores

SIDES = (512, 512, 300)
"""Columns, rows and slices."""
WINDOW, BATCH = 128, 4
ENCODINGS = {"raw": "raw", "zstd": "zstd", "tiles": "tiles:64", "tiles-zstd": "tiles-zstd:64"}
PEER = """
import json, sys, time
from pathlib import Path
import nibabel, numpy as np

root, way, suffix, window, seconds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
names = sorted(path.name for path in Path(root, "imagesTr").glob("*" + suffix) if path.name.endswith(suffix))
dice, done, began = np.random.default_rng(1), 0, time.perf_counter()
while done == 0 or time.perf_counter() - began < seconds:
    name, start = dice.choice(names), None
    for folder in ("imagesTr", "labelsTr"):
        volume = nibabel.load(Path(root, folder, name))
        start = [dice.integers(0, side - window + 1) for side in volume.shape] if start is None else start
        part = tuple(slice(at, at + window) for at in start)
        array = volume.get_fdata()[part] if way == "whole" else np.asarray(volume.dataobj[part])
        np.ascontiguousarray(array.T)
    done += 1
print(json.dumps(done / (time.perf_counter() - began)))
"""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--peer", required=True, help="a Python that has nibabel")
    asked.add_argument("--volumes", type=int, default=4)
    asked.add_argument("--seconds", type=float, default=5)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--keep", type=Path, help="a folder for the files and packs, which are kept there")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        raw = root / "raw"
        if not raw.is_dir():
            _make(raw, options.volumes)
        packs = {name: root / f"pack-{name}" for name in ENCODINGS}
        for name, out in packs.items():
            if not out.is_dir():
                _build(raw, out, ENCODINGS[name])
        rates: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, out in packs.items():
                for threads in sorted({1, usable_cores()}):
                    rates.setdefault(f"{name}, {threads} threads", []).append(_ours(out, threads, options.seconds))
            for way in ("whole", "sliced"):
                for suffix in (".nii", ".nii.gz"):
                    rate = _peer(options.peer, raw, way, suffix, options.seconds)
                    rates.setdefault(f"nibabel {way} {suffix}", []).append(rate)
        print(
            f"{options.volumes} volumes of {'x'.join(map(str, SIDES))}, windows of {WINDOW}^3, {usable_cores()} cores"
        )
        ours = median(rates["raw, 1 threads"])
        lines = [(name, f"{median(each):,.2f}", f"{ours / median(each):,.1f}") for name, each in rates.items()]
        for line in aligned([("", "windows/s", "raw, 1 thread is so many times as fast"), *lines]):
            print(line)


def _make(raw: Path, volumes: int) -> None:
    """Write each volume plain and compressed."""
    for number in range(volumes):
        image, label = _volume(number)
        for folder, volume in (("imagesTr", image), ("labelsTr", label)):
            data = nifti(volume)
            (raw / folder).mkdir(parents=True, exist_ok=True)
            (raw / folder / f"scan{number}.nii").write_bytes(data)
            (raw / folder / f"packed{number}.nii.gz").write_bytes(gzip.compress(data, 1))


def _volume(number: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers such as those of a CT, and the class of each."""
    dice = np.random.default_rng(number)
    coarse = dice.normal(0, 300, (SIDES[2], 16, 16)).astype(np.float32)
    image = np.empty(SIDES, np.int16, order="F")
    for index, plane in enumerate(coarse):
        smooth = cv2.resize(plane, SIDES[:2], interpolation=cv2.INTER_CUBIC)
        image[..., index] = smooth.T + dice.normal(0, 12, SIDES[:2])
    return image, (image > 300).astype(np.uint8)


def _build(raw: Path, out: Path, encoding: str) -> None:
    """Pack the volumes that are not compressed."""
    rows = ["--from", str(raw), "--volumes", "--image", "imagesTr/scan{key}", "--label", "labelsTr/scan{key}"]
    encode = [each for name in ("image", "label") for each in ("--encode", f"{name}={encoding}")]
    run_build(["build", *rows, str(out), "--classes", "2", "--labels", "index", *encode])


def _ours(out: Path, threads: int, seconds: float) -> float:
    """Return the windows per second of our loader."""
    loader = open_dataset(out).loader(BATCH, crop=(WINDOW,) * 3, shuffle=True, threads=threads, pad=True)
    done, began = 0, 0.0
    for turn in count():
        for images, _ in loader:
            done += len(images) if turn else 0
        began = began or time.perf_counter()
        if turn and time.perf_counter() - began > seconds:
            break
    return done / (time.perf_counter() - began)


def _peer(python: str, raw: Path, way: str, suffix: str, seconds: float) -> float:
    """Return the windows per second of nibabel."""
    arguments = [python, "-c", PEER, str(raw), way, suffix, str(WINDOW), str(seconds)]
    rate: float = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    return rate
