"""Pack the sample scenes in every format, verify them, read shuffled epochs, compare with reading the raw files.

tools/run demo [--out FOLDER] [--rounds 15]
"""

from __future__ import annotations

import json
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from program import REPO, SAMPLES, parser
from tables import aligned
from torch.utils.data import DataLoader, Dataset

from packer.classes.load import read_table
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pairs.find import find_pairs
from packer.pixels.label_codec import LabelCodec
from readers import open_dataset
from readers.contract.manifest import STORAGES
from readers.contract.onehot import expand

BATCH = 8


class RawFiles(Dataset[Any]):
    """The data set of a training without a pack: it decodes the image and the label of a sample in every epoch.

    It uses the packer's own decoders and table look-up, which are faster than those of most training scripts.
    """

    def __init__(self, raw: Path, split: str) -> None:
        self.pairs = [pair for pair in find_pairs(raw).pairs if pair.split == split]
        self.raw = raw
        self.table = read_table(raw / "class_dict.csv")
        self.codec = LabelCodec(self.table)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        pair = self.pairs[index]
        image = decode_image((self.raw / pair.image).read_bytes(), ImageRules())
        label = self.codec.decode((self.raw / pair.label).read_bytes())
        planes = expand(label.astype(np.uint8), len(self.table))
        return torch.from_numpy(image.transpose(2, 0, 1).copy()), torch.from_numpy(planes)


def packer(*arguments: str) -> str:
    """Run the command as a user would. Print it and return its output."""
    print("$", shlex.join(["packer", *arguments]), flush=True)
    done = subprocess.run([sys.executable, "-m", "packer", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}packer exited with {done.returncode}")
    return done.stdout.strip()


def epoch_rate(dataset: Dataset[Any]) -> float:
    """Return the samples per second of one shuffled epoch through the stock DataLoader."""
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
    started = time.perf_counter()
    samples = sum(len(images) for images, _ in loader)
    return samples / (time.perf_counter() - started)


def rates(datasets: dict[str, Dataset[Any]], rounds: int) -> dict[str, float]:
    """Return the median rate of each data set. They take turns, so a busy moment of the machine hits all of them."""
    measured: dict[str, list[float]] = {name: [] for name in datasets}
    for number in range(rounds + 1):
        for name, dataset in datasets.items():
            rate = epoch_rate(dataset)
            if number:  # the first round warms up
                measured[name].append(rate)
    return {name: statistics.median(values) for name, values in measured.items()}


def megabytes(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6:.1f} MB"


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--out", type=Path, default=REPO / "demo", help="folder of the packs (default: demo/)")
    command.add_argument("--rounds", type=int, default=15, help="epochs to read from each")
    command.add_argument("--formats", nargs="+", choices=STORAGES, default=STORAGES, help="default: all")
    options = command.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    built = {}
    for storage in options.formats:
        out = str(options.out / storage)
        built[storage] = json.loads(packer("build", "--quiet", "--json", "--format", storage, str(SAMPLES), out))
        print(packer("verify", "--quiet", out))
    torch.set_num_threads(1)  # collating a batch in several threads is no faster, and much slower on a busy machine
    datasets: dict[str, Dataset[Any]] = {"raw files": RawFiles(SAMPLES, "train")}
    datasets |= {storage: open_dataset(options.out / storage, split="train") for storage in options.formats}
    read = rates(datasets, options.rounds)
    table = [("format", "on disk", "build/s", "read/s", "to raw")]
    table += [("raw files", megabytes(SAMPLES), "", f"{read['raw files']:.0f}", "1.0x")]
    for storage in options.formats:
        build_rate = built[storage]["pairs"] / built[storage]["seconds"]
        gain = read[storage] / read["raw files"]
        table += [
            (storage, megabytes(options.out / storage), f"{build_rate:.0f}", f"{read[storage]:.0f}", f"{gain:.1f}x")
        ]
    print("", *aligned(table), sep="\n")
    print(f"samples per second; DataLoader(batch_size={BATCH}, shuffle=True), median of {options.rounds} epochs")
    print("\nThe next lines of a training script:\n")
    print("    import torch; from readers import open_dataset")
    print(f'    train = open_dataset("{options.out / options.formats[-1]}", split="train")')
    print("    loader = torch.utils.data.DataLoader(train, batch_size=16, shuffle=True)")
