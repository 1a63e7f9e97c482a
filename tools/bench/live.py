"""Seconds to the first batch, and to the end of the first epochs, from the start of the program.

    tools/run bench.live [--pairs 200 2000 20000] [--rounds 3] [--keep FOLDER]

*loop* decodes PNG files of 512x512 with OpenCV in a DataLoader with a worker for each core. *litdata* does it with
its StreamingRawDataset, if the environment of this program has it. *build, then train* runs `packer build` and reads
the pack. *live* opens the raw folder with pack=, and reads it while it is built. Each is a program of its own, so
imports count; files are in the page cache. Nothing is trained: all cores may decode.

A second table compares the rows that `packer build` packs in a second with those that the first epoch of *live* reads,
from the call of open_dataset on.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from program import parser
from scenes.squares import make_squares
from tables import aligned

from bench.machine import machine

EPOCHS, BATCH = 2, 16
DECODE = """
import cv2, numpy, torch
from pathlib import Path
from torch.utils.data import DataLoader, Dataset
def decoded(files):
    image, label = (cv2.imdecode(numpy.frombuffer(data, "u1"), flag) for data, flag in zip(files, (1, -1)))
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return torch.from_numpy(image).permute(2, 0, 1), torch.from_numpy(label)
class Pairs:
    @property
    def loader(self):
        return DataLoader(self, BATCH, shuffle=True, num_workers=os.cpu_count(), persistent_workers=True)
"""
LOOP = """
class Files(Pairs, Dataset):
    def __init__(self, raw):
        self.images = sorted(Path(raw, "images").iterdir())
    def __len__(self):
        return len(self.images)
    def __getitem__(self, row):
        path = self.images[row]
        return decoded([path.read_bytes(), (path.parent.parent / "labels" / path.name).read_bytes()])
loader = Files(sys.argv[1]).loader
"""
LITDATA = """
from litdata import StreamingRawDataset
class Streamed(Pairs, StreamingRawDataset):
    def setup(self, files):
        pairs = {}
        for file in files:
            if file.path.endswith(".png"):
                pairs.setdefault(Path(file.path).name, {})[Path(file.path).parent.name] = file
        return [[pair["images"], pair["labels"]] for pair in pairs.values()]
loader = Streamed(sys.argv[1], cache_dir=sys.argv[2], transform=decoded).loader
"""
BUILD = """
import subprocess
options = ["--quiet", "--classes", "12", "--labels", "index"]
begun = time.monotonic()
subprocess.run([sys.executable, "-m", "packer", "build", *options, sys.argv[1], sys.argv[2]], check=True, stdout=-3)
packing = time.monotonic() - begun
from readers import open_dataset
loader = open_dataset(sys.argv[2]).loader(BATCH, shuffle=True)
"""
LIVE = """
import torch
from readers import Window, open_dataset
begun = time.monotonic()
train = open_dataset(sys.argv[1], pack=sys.argv[2], classes=12, labels="index", shard_size="32MiB")
loader = train.loader(BATCH, shuffle=Window(16, 4))
"""
READ = f"""
for epoch in range({EPOCHS}):
    for batch in loader:
        if marks is not None:
            marks.append(time.monotonic() - started)
            ends, marks = marks, None
    ends.append(time.monotonic() - started)
    packing = packing or started + ends[1] - begun
print(*ends, packing)
"""
BEGIN = f"import os, sys, time\nbegun = started = float(sys.argv[3])\npacking, marks, BATCH = 0, [], {BATCH}\n"
LIT, PACKED, READ_LIVE = "litdata", "build, then train", "live"
WAYS = {"loop": DECODE + LOOP, LIT: DECODE + LITDATA, PACKED: BUILD, READ_LIVE: LIVE}


@dataclass(frozen=True)
class Times:
    """Seconds from the start of a program to its first batch and to the end of each epoch."""

    ends: tuple[float, ...]
    packing: float
    """Seconds of the build, or of the first epoch from the call that opens the data."""

    @classmethod
    def median(cls, runs: Sequence[Times]) -> Times:
        ends = zip(*(run.ends for run in runs), strict=True)
        return cls(tuple(map(statistics.median, ends)), statistics.median(run.packing for run in runs))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, nargs="+", default=[200, 2000])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    chosen = options.parse_args()
    print(machine())
    ways = [name for name in WAYS if name != LIT or find_spec("litdata")]
    if LIT not in ways:
        print(f"without {LIT}: it is not installed for {sys.executable}")
    rows = [["seconds", "pairs", "first batch", *(f"end of epoch {number + 1}" for number in range(EPOCHS))]]
    speeds = [["rows/s", "build", "first epoch, live", "live / build"]]
    with tempfile.TemporaryDirectory() as temporary:
        for pairs in chosen.pairs:
            raw, _, _ = make_squares((chosen.keep or Path(temporary)) / str(pairs), pairs)
            runs: dict[str, list[Times]] = {name: [] for name in ways}
            for _ in range(chosen.rounds):
                for name in ways:
                    runs[name].append(run(WAYS[name], raw, Path(temporary) / "out"))
            medians = {name: Times.median(times) for name, times in runs.items()}
            rows += [[name, str(pairs), *(f"{end:.1f}" for end in times.ends)] for name, times in medians.items()]
            build, live = (pairs / medians[name].packing for name in (PACKED, READ_LIVE))
            speeds.append([f"{pairs} pairs", f"{build:.0f}", f"{live:.0f}", f"{live / build:.2f}"])
    print("\n".join([*aligned(rows), "", *aligned(speeds)]))


def run(way: str, raw: Path, out: Path) -> Times:
    """Return the seconds of one run, in a new folder."""
    shutil.rmtree(out, ignore_errors=True)
    clock = time.monotonic()
    command = [sys.executable, "-c", BEGIN + way + READ, str(raw), str(out), str(clock)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    (raw / "index.json.zstd").unlink(missing_ok=True)  # LitData leaves it
    *ends, packing = map(float, done.stdout.split())
    return Times(tuple(ends), packing)


if __name__ == "__main__":
    main()
