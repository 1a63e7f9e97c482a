"""Find wrong labels: a model predicts rows that it has not seen, and cleanlab compares each label with its prediction.

python docs/recipes/label_errors.py PACK [EPOCHS]            # then sort by it:
packer view PACK --scores PACK-predictions/scores.csv
"""

import csv
import sys
from pathlib import Path

import numpy as np
import torch
from cleanlab.segmentation.rank import get_label_quality_scores
from numpy.typing import NDArray
from torch.nn import BatchNorm2d, Conv2d, ReLU, Sequential
from torch.nn.functional import cross_entropy

from readers import SegDataset, open_dataset

FOLDS, STEP = 3, 2  # predictions are kept for every second line and column
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def small_model(bands: int, classes: int) -> Sequential:
    """Return your model; if it has logits for all pixels, take `[..., ::STEP, ::STEP]` of them."""
    sizes = ((bands, STEP, 1), (16, 1, 1), (16, 1, 2), (16, 1, 4))
    layers = [Sequential(Conv2d(n, 16, 3, step, far, far), BatchNorm2d(16), ReLU()) for n, step, far in sizes]
    return Sequential(BatchNorm2d(bands), *layers, Conv2d(16, classes, 1))


def trained(data: SegDataset, rows: list[int], epochs: int) -> torch.nn.Module:
    model = small_model(data[0].image.shape[0], len(data.classes)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(data, rows), 8, shuffle=True)
    for _ in range(epochs):
        for images, labels in loader:
            wanted, logits = labels[:, ::STEP, ::STEP].to(DEVICE).long(), model(images.to(DEVICE).float())
            losses = cross_entropy(logits, wanted, ignore_index=data.classes.ignore_index, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()  # ignored pixels are 0; rows without labels do no harm
            optimizer.step()
    return model.eval().requires_grad_(False)


def quality(label: NDArray[np.integer], chances: NDArray[np.floating]) -> float:
    """Return cleanlab's score of one row. Ignored pixels do not count: the others become a picture of one line."""
    known = label < len(chances)
    line, found = label[known].astype(np.int64)[None, None], chances[:, known].astype(np.float32)[None, :, None]
    # cleanlab's default temperature of 0.1 sees little but the worst edges
    return float(get_label_quality_scores(line, found, temperature=0.3, verbose=False)[0][0]) if known.any() else 1.0


if __name__ == "__main__":
    pack, epochs = Path(sys.argv[1]), int((*sys.argv[2:], 6)[0])
    torch.manual_seed(0)
    data = open_dataset(pack, split="all", label="index")
    names = [f"{split.name}/" for split in data.manifest.splits for _ in range(split.rows)]
    (folder := pack.with_name(f"{pack.name}-predictions")).mkdir(exist_ok=True)
    shape = (len(data), len(data.classes), *data[0].label[::STEP, ::STEP].shape)
    chances = np.lib.format.open_memmap(folder / "chances.npy", "w+", np.float16, shape)
    with (folder / "scores.csv").open("w", newline="") as file:
        for fold in range(FOLDS):  # blocks in the order of keys: tiles of a picture and frames of a drive stay together
            block = range(len(data) * fold // FOLDS, len(data) * (fold + 1) // FOLDS)
            model = trained(data, [row for row in range(len(data)) if row not in block], epochs)
            for row in block:
                chances[row] = model(data[row].image[None].to(DEVICE).float())[0].softmax(0).cpu().numpy()
                score = quality(data[row].label[::STEP, ::STEP].numpy(), chances[row])
                csv.writer(file).writerow([names[row] + data.key(row), score])
            print(f"rows {block[0]} to {block[-1]}: scored by a model of the others")
