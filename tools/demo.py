"""The demo: pack the sample scenes in every format, verify them, read shuffled epochs, compare with the raw files."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from packer.classes.load import read_table
from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.pairs.find import find_pairs
from packer.pixels.label_codec import LabelCodec
from readers import open_dataset
from readers.contract.manifest import STORAGES
from readers.contract.onehot import expand

REPO = Path(__file__).resolve().parent.parent
RAW = REPO / "data_samples" / "raw"
BATCH = 8


class RawFiles(Dataset[Any]):
    """What training does without a pack: decode the image and the label of each sample, in every epoch.

    With the packer's own decoders and its table look-up, which are faster than what people mostly write.
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
    """Run the command as a user would; show it and what it says."""
    print("$ packer", *arguments, flush=True)
    done = subprocess.run([sys.executable, "-m", "packer", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}packer ended with {done.returncode}")
    return done.stdout.strip()


def epoch_rate(dataset: Dataset[Any]) -> float:
    """Samples per second of one shuffled epoch through the stock DataLoader."""
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
    started = time.perf_counter()
    samples = sum(len(images) for images, _ in loader)
    return samples / (time.perf_counter() - started)


def rates(datasets: dict[str, Dataset[Any]], rounds: int) -> dict[str, float]:
    """The median of several epochs of each, taken in turns, so that a busy moment hits all alike."""
    measured: dict[str, list[float]] = {name: [] for name in datasets}
    for number in range(rounds + 1):
        for name, dataset in datasets.items():
            rate = epoch_rate(dataset)
            if number:  # the first round warms up
                measured[name].append(rate)
    return {name: statistics.median(values) for name, values in measured.items()}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPO / "demo", help="where the packs go (default: demo/)")
    parser.add_argument("--rounds", type=int, default=15, help="epochs to read from each")
    parser.add_argument("--formats", nargs="+", choices=STORAGES, default=STORAGES, help="which formats (default: all)")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    built = {}
    for storage in options.formats:
        out = str(options.out / storage)
        built[storage] = json.loads(packer("build", "--quiet", "--json", "--format", storage, str(RAW), out))
        print(packer("verify", "--quiet", out))
    torch.set_num_threads(1)  # collating a batch in several threads is no faster, and much slower on a busy machine
    datasets: dict[str, Dataset[Any]] = {"raw files": RawFiles(RAW, "train")}
    datasets |= {storage: open_dataset(options.out / storage, split="train") for storage in options.formats}
    read = rates(datasets, options.rounds)
    print(f"\n{'format':<10} {'on disk':>10} {'build/s':>9} {'read/s':>9} {'to raw':>8}")
    print(f"{'raw files':<10} {size(RAW) / 1e6:>7.1f} MB {'':>9} {read['raw files']:>9.0f} {'1.0x':>8}")
    for storage in options.formats:
        build_rate = built[storage]["pairs"] / built[storage]["seconds"]
        gain = f"{read[storage] / read['raw files']:.1f}x"
        on_disk = size(options.out / storage) / 1e6
        print(f"{storage:<10} {on_disk:>7.1f} MB {build_rate:>9.0f} {read[storage]:>9.0f} {gain:>8}")
    print(f"samples per second; DataLoader(batch_size={BATCH}, shuffle=True), median of {options.rounds} epochs")
    print("\nWhat to write next:\n")
    print("    import torch; from readers import open_dataset")
    print(f'    train = open_dataset("{options.out / options.formats[-1]}", split="train")')
    print("    loader = torch.utils.data.DataLoader(train, batch_size=16, shuffle=True)")


if __name__ == "__main__":
    main()
