"""`packer build`, next to the scripts that people write to store decoded pairs.

    tools/run bench.building_users [--pairs 400] [--rounds 3] [--colours] [--keep FOLDER]

JPEG and PNG of 960x720 become arrays of 512x512. Each script runs as it is usually written, in one process, and once
more with a pool of processes on all cores that decodes (and, where files are apart, writes). The time is that of the
whole command, from the start of Python until all files are on the disk. Scripts and `packer build` take turns.

    pillow_npy       Pillow as in torchvision, `np.save` of each image and label
    cv2_h5py         OpenCV, one HDF5 file, a row at a time
    cv2_lmdb         OpenCV, `put` of the bytes of each pair, a transaction for all
    tar_of_jpeg      OpenCV, resized pictures encoded again into tar files, as img2dataset does: nothing is decoded once
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from program import command, parser
from scenes.camera import HEIGHT, WIDTH, make_linked_streets
from scenes.street import CLASSES
from tables import aligned

from bench.decode_loop import SIZE
from bench.machine import PACKER_PACKAGES, machine, versions
from bench.user_scripts import SCRIPTS
from bench.write_job import bring_to_disk
from readers.contract.manifest import STORAGES
from readers.machine import usable_cores


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--colours", action="store_true", help="labels are colours instead of class numbers")
    options.add_argument("--formats", nargs="+", choices=STORAGES, default=["npy", "hdf5", "lmdb"])
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the pairs there and keep them")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raw = (chosen.keep or Path(folder)) / ("colours" if chosen.colours else "numbers")
        if not raw.is_dir():
            make_linked_streets(raw, chosen.pairs, chosen.colours)
        kind = "colours" if chosen.colours else "numbers"
        print(f"{chosen.pairs} pairs of {WIDTH}x{HEIGHT}, JPEG and PNG of {kind}, to {SIZE}x{SIZE}")
        print(f"{machine()}, load {os.getloadavg()[0]:.1f}\n{versions((*PACKER_PACKAGES, 'pillow'))}\n", flush=True)
        commands = {f"packer build, {storage}": build(storage, raw, chosen.colours) for storage in chosen.formats}
        for name in SCRIPTS:
            for workers in (1, usable_cores()):
                title = f"{name}, {workers} process{'es' * (workers > 1)}"
                commands[title] = command("bench.user_scripts", name, raw, chosen.pairs, workers)
        print("\n".join(aligned(table(measure(commands, Path(folder) / "out", chosen.rounds), chosen.pairs))))


def build(storage: str, raw: Path, colours: bool) -> list[str]:
    """Return the command line of a build, without OUT."""
    classes = () if colours else ("--classes", str(len(CLASSES)))
    options = ("--format", storage, "--size", f"{SIZE}x{SIZE}", "--labels", "index", *classes, "--quiet")
    return [sys.executable, "-m", "packer", "build", *options, str(raw)]


def measure(commands: dict[str, list[str]], out: Path, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each command in each round. A command gets OUT as its last argument."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            os.sync()
            started = time.perf_counter()
            subprocess.run([*argv, str(out)], check=True)
            bring_to_disk(out)
            seconds[name].append(time.perf_counter() - started)
            shutil.rmtree(out)
    return seconds


def table(seconds: dict[str, list[float]], pairs: int) -> list[tuple[str, ...]]:
    """Return the rates, and by how much the first command is faster in the same round."""
    rows: list[tuple[str, ...]] = [("", "pairs/s", "least", "most", "packer is faster by", "least", "most")]
    first = next(iter(seconds.values()))
    for name, found in seconds.items():
        rates = [pairs / taken for taken in found]
        times = [taken / ours for taken, ours in zip(found, first, strict=True)]
        rows.append((name, *three(rates, ".0f"), *three(times, ".2f")))
    return rows


def three(numbers: Sequence[float], digits: str) -> list[str]:
    return [format(number, digits) for number in (statistics.median(numbers), min(numbers), max(numbers))]
