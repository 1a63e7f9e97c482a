"""A nightly build in which nothing or one picture has changed, of a data set of many small pictures.

    tools/run bench.nights [--pairs 50000] [--keep FOLDER]

The pictures are 16x16, so the bench measures the bookkeeping: finding, comparing, reusing.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import parser
from scenes.noise import write_noise
from scenes.pictures import LONG_AGO

LINKS = 30_000
"""The number of links to one file. File systems limit it."""
SIZE, CLASSES = (16, 16), 4
KINDS = ("images", "labels")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=50_000)
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="work there and delete nothing")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        raw, out = root / "raw", root / "out"
        if not raw.is_dir():
            make_linked_noise(raw, chosen.pairs)
        print(f"{2 * chosen.pairs:,} files, {chosen.pairs:,} pairs of 16x16")
        night("first build", raw, out)
        night("nothing changed", raw, out)
        night("nothing changed, --trust digest", raw, out, "--trust", "digest")
        write_noise(raw, f"{chosen.pairs // 2:07}", SIZE, CLASSES, 999)
        night("one picture changed", raw, out)


def make_linked_noise(raw: Path, pairs: int) -> None:
    """Make a raw folder of few pictures and many links to them."""
    for number in range(pairs):
        drawn = number - number % LINKS
        if number == drawn:
            write_noise(raw, f"{number:07}", SIZE, CLASSES, number)
        for kind in KINDS:
            path, first = raw / kind / f"{number:07}.png", raw / kind / f"{drawn:07}.png"
            if number == drawn:
                os.utime(path, (LONG_AGO, LONG_AGO))
            else:
                os.link(first, path)


def night(name: str, raw: Path, out: Path, *options: str) -> None:
    """Run the command once, as the cron job of a user does."""
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--classes", str(CLASSES), "--labels", "index"]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--shard-size", "4MiB", *options, str(raw), str(out)], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    summary = done.stdout.strip().partition(": ")[2] or done.stderr[-300:]
    print(f"{name:32}{seconds:7.1f} s   at most {memory:.0f} MiB   {summary}", flush=True)
