"""A nightly build in which nothing or one picture has changed, of a data set of many small pictures.

    tools/run bench.nights [--pairs 50000] [--layout flat] [--rounds 1] [--keep FOLDER]

The pictures are 16x16, so the bench measures the bookkeeping: finding, comparing, reusing. The memory of a pair is what
a night takes more than a night of 12 pairs, divided by the pairs. With another program on the machine the CPU time of
the process (user and system) says more than the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from program import parser
from scenes.noise import write_noise
from scenes.pictures import LONG_AGO

LINKS = 30_000
"""The number of links to one file. File systems limit it."""
SIZE, CLASSES = (16, 16), 4
KINDS = ("images", "labels")
FEW = 12
"""The pairs of the small data set."""
CITIES = 300
LAYOUTS = {"flat": "{number:07}", "cities": "city{city:03}/{number:07}", "deep": "{thousand:04}/{hundred}/{number:07}"}


@dataclass(frozen=True)
class Night:
    """The cost of one run of the command."""

    seconds: float
    cpu: float
    bytes: int
    summary: str


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=50_000)
    options.add_argument(
        "--layout", choices=LAYOUTS, default="flat", help="one folder, folders per city, or many folders"
    )
    options.add_argument("--rounds", type=int, default=1, help="nights in which nothing changed")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="work there and delete nothing")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = chosen.keep or Path(temporary)
        small = measure(root / "few", FEW, chosen.layout, chosen.rounds, None)
        measure(root / chosen.layout, chosen.pairs, chosen.layout, chosen.rounds, small)
        show("nothing changed, --trust digest", run_night(root / chosen.layout, "--trust", "digest"))
        write_noise(root / chosen.layout / "raw", key_of(chosen.layout, chosen.pairs // 2), SIZE, CLASSES, 999)
        show("one picture changed", run_night(root / chosen.layout))


def measure(folder: Path, pairs: int, layout: str, rounds: int, small: Night | None) -> Night:
    """Build a folder once and then for some nights in which nothing changes; return the last night."""
    if not folder.is_dir():
        make_linked_noise(folder / "raw", pairs, layout)
    print(f"{2 * pairs:,} files, {pairs:,} pairs of 16x16, {layout}")
    last = run_night(folder)
    show("first build", last)
    for _ in range(rounds):
        last = run_night(folder)
        show("nothing changed", last, pairs, small)
    return last


def make_linked_noise(raw: Path, pairs: int, layout: str = "flat") -> None:
    """Make a raw folder of few pictures and many links to them."""
    first = ""
    for number in range(pairs):
        key = key_of(layout, number)
        if number % LINKS == 0:
            first = key
            write_noise(raw, key, SIZE, CLASSES, number)
        for kind in KINDS:
            path = raw / kind / f"{key}.png"
            if number % LINKS == 0:
                os.utime(path, (LONG_AGO, LONG_AGO))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(raw / kind / f"{first}.png", path)


def key_of(layout: str, number: int) -> str:
    return LAYOUTS[layout].format(
        number=number, city=number % CITIES, thousand=number // 1000, hundred=number // 100 % 10
    )


def run_night(folder: Path, *options: str) -> Night:
    """Run the command once, as the cron job of a user does."""
    command = [sys.executable, "-m", "packer", "build", "--quiet", "--classes", str(CLASSES), "--labels", "index"]
    command += ["--shard-size", "4MiB", *options, str(folder / "raw"), str(folder / "out")]
    # Python keeps compiled modules for its users; without them a start takes 0.13 s longer.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=environment)
        _, _, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        output.seek(0)
        summary = output.read().decode().strip().partition(": ")[2] or "failed"
    return Night(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, summary)


def show(name: str, night: Night, pairs: int = 0, small: Night | None = None) -> None:
    memory = f"{night.bytes / 2**20:5.0f} MiB"
    if small:
        memory += f", {(night.bytes - small.bytes) / pairs:,.0f} bytes a pair"
    print(f"{name:32}{night.seconds:7.2f} s{night.cpu:8.2f} s of CPU   {memory}   {night.summary}", flush=True)
