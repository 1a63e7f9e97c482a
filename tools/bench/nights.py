"""Benchmark: how long a night takes in which nothing changed, or one picture, in a data set of many small pictures.

    PYTHONPATH=tools python -m bench.nights [--pairs 50000] [--keep FOLDER]

The pictures are 16x16, so that what is measured is the bookkeeping: finding, comparing, reusing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

LINKS = 30_000
"""Files are links of few originals: a file system allows so many of each."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--keep", type=Path, help="Where to work, and to leave everything.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        raw, out = root / "raw", root / "out"
        if not raw.is_dir():
            make(raw, chosen.pairs)
        print(f"{2 * chosen.pairs:,} files, {chosen.pairs:,} pairs of 16x16")
        night("first build", raw, out)
        night("nothing changed", raw, out)
        night("nothing changed, --trust digest", raw, out, "--trust", "digest")
        changed = raw / "images" / f"{chosen.pairs // 2:07}.png"
        changed.unlink()
        picture(changed, 999)
        night("one picture changed", raw, out)


def make(raw: Path, pairs: int) -> None:
    for kind in ("images", "labels"):
        (raw / kind).mkdir(parents=True)
    for number in range(pairs):
        origin = number - number % LINKS
        for kind in ("images", "labels"):
            path, first = raw / kind / f"{number:07}.png", raw / kind / f"{origin:07}.png"
            if number == origin:
                picture(path, number)
                os.utime(path, (1_500_000_000, 1_500_000_000))
            else:
                os.link(first, path)


def picture(path: Path, seed: int) -> None:
    dice = np.random.default_rng(seed)
    image = path.parent.name == "images"
    pixels = dice.integers(0, 256 if image else 4, (16, 16, 3) if image else (16, 16), np.uint8)
    cv2.imwrite(str(path), pixels)


def night(what: str, raw: Path, out: Path, *options: str) -> None:
    """One run of the command, as a user's cron job starts it."""
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--classes", "4", "--labels", "index"]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--shard-size", "4MiB", *options, str(raw), str(out)], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    words = done.stdout.strip().partition(": ")[2] or done.stderr[-300:]
    print(f"{what:32}{seconds:7.1f} s   at most {memory:.0f} MiB   {words}", flush=True)


if __name__ == "__main__":
    main()
