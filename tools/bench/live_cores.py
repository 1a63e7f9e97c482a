"""Measure what a model that trains on CPUs loses to the builder of the pack that it reads, by `readers.watch`.

    tools/run bench.live_cores [--pairs 2000] [--rounds 3] [--threads 1 2]

A small network takes steps on some threads of PyTorch, on crops of a pack that is finished, and of one that is built at
the same time, in turns, each in a program of its own. A row has the milliseconds that a step computes and waits.
"""

from __future__ import annotations

import json
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

TRAINING = """
import json, sys, torch
from torch import nn
from readers import Window, open_dataset, watch
raw, out, threads, live = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "live"
torch.set_num_threads(threads)
build = dict(pack=out, classes=12, labels="index", shard_size="32MiB") if live else {}
train = open_dataset(raw if live else out, **build)
model = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 12, 3, 2))
descent = torch.optim.SGD(model.parameters(), 0.01)
loader = train.loader(16, shuffle=Window(16, 4), crop=(256, 256))
with watch(loader, quiet=True) as batches:
    for images, labels in batches:
        scores = model(images.float() / 255)
        loss = nn.functional.cross_entropy(scores, labels[:, 2::4, 2::4][:, :63, :63].long(), ignore_index=255)
        descent.zero_grad(); loss.backward(); descent.step()
totals = batches.record().totals
print(json.dumps([1000 * totals.computing / totals.steps, 1000 * totals.waiting / totals.steps, totals.starting]))
"""
WAYS = "finished", "live"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    chosen = options.parse_args()
    print(machine())
    rows = [["pack", "threads", "computing, ms", "waiting, ms", "to the first batch, s"]]
    with tempfile.TemporaryDirectory() as temporary:
        raw, _, _ = make_squares(Path(temporary) / "raw", chosen.pairs)
        for threads in chosen.threads:
            runs: dict[str, list[list[float]]] = {way: [] for way in WAYS}
            for _ in range(chosen.rounds):
                for way in reversed(WAYS):  # the live one leaves the pack that the other one reads
                    out = Path(temporary) / "out"
                    if way == "live":
                        shutil.rmtree(out, ignore_errors=True)
                    runs[way].append(train(raw, out, threads, way))
            for way, measured in runs.items():
                numbers = (statistics.median(some) for some in zip(*measured, strict=True))
                rows.append([way, str(threads), *(f"{number:.1f}" for number in numbers)])
    print("\n".join(aligned(rows)))


def train(raw: Path, out: Path, threads: int, way: str) -> list[float]:
    """Return the measurements of one epoch. A live pack is finished afterwards."""
    command = [sys.executable, "-c", TRAINING, str(raw), str(out), str(threads), way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    if way == "live":
        options = ["--quiet", "--classes", "12", "--labels", "index", "--shard-size", "32MiB"]
        build = [sys.executable, "-m", "packer", "build", *options, str(raw), str(out)]
        while subprocess.run(build, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 75:
            time.sleep(0.2)  # its builder still publishes
    numbers: list[float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


if __name__ == "__main__":
    main()
