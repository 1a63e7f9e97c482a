"""Seconds to the first batch, and to the end of the first epochs, from the start of the program.

    tools/run bench.live [--pairs 200 2000] [--rounds 3] [--keep FOLDER]

*loop* decodes PNG files of 512x512 with OpenCV in a DataLoader with a worker for each core. *build, then train* runs
`packer build` and reads the pack. *live* opens the raw folder with pack=, and reads it while it is built. Each is a
program of its own, so imports count; files are in the page cache. Nothing is trained: all cores may decode.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import parser
from scenes.squares import make_squares
from tables import aligned

from bench.machine import machine

EPOCHS, BATCH = 2, 16
LOOP = """
import cv2, torch
from pathlib import Path
from torch.utils.data import DataLoader, Dataset
class Files(Dataset):
    def __init__(self, raw):
        self.images = sorted(Path(raw, "images").iterdir())
    def __len__(self):
        return len(self.images)
    def __getitem__(self, row):
        path = self.images[row]
        image = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
        label = cv2.imread(str(path.parent.parent / "labels" / path.name), cv2.IMREAD_UNCHANGED)
        return torch.from_numpy(image).permute(2, 0, 1), torch.from_numpy(label)
loader = DataLoader(Files(sys.argv[1]), BATCH, shuffle=True, num_workers=os.cpu_count(), persistent_workers=True)
"""
BUILD = """
import subprocess
options = ["--quiet", "--classes", "12", "--labels", "index"]
subprocess.run([sys.executable, "-m", "packer", "build", *options, sys.argv[1], sys.argv[2]], check=True, stdout=-3)
from readers import open_dataset
loader = open_dataset(sys.argv[2]).loader(BATCH, shuffle=True)
"""
LIVE = """
from readers import Window, open_dataset
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
print(*ends)
"""
BEGIN = f"import os, sys, time\nstarted, marks, BATCH = float(sys.argv[3]), [], {BATCH}\n"
WAYS = {"loop": LOOP, "build, then train": BUILD, "live": LIVE}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, nargs="+", default=[200, 2000])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    chosen = options.parse_args()
    print(machine())
    rows = [["seconds", "pairs", "first batch", *(f"end of epoch {number + 1}" for number in range(EPOCHS))]]
    with tempfile.TemporaryDirectory() as temporary:
        for pairs in chosen.pairs:
            raw, _, _ = make_squares((chosen.keep or Path(temporary)) / str(pairs), pairs)
            runs: dict[str, list[list[float]]] = {name: [] for name in WAYS}
            for _ in range(chosen.rounds):
                for name in WAYS:
                    runs[name].append(run(WAYS[name], raw, Path(temporary) / "out"))
            for name, times in runs.items():
                rows.append(
                    [name, str(pairs), *(f"{statistics.median(some):.1f}" for some in zip(*times, strict=True))]
                )
    print("\n".join(aligned(rows)))


def run(way: str, raw: Path, out: Path) -> list[float]:
    """Return the seconds of one run, in a new folder."""
    shutil.rmtree(out, ignore_errors=True)
    clock = time.monotonic()
    command = [sys.executable, "-c", BEGIN + way + READ, str(raw), str(out), str(clock)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [float(text) for text in done.stdout.split()]


if __name__ == "__main__":
    main()
