"""torch.compile and bfloat16 autocast: batches arrive normalised and in channels-last layout.

python docs/recipes/compile_amp.py PACK        # on a CPU, torch.compile needs a C++ compiler
"""

import sys

import torch
from torch.nn.functional import cross_entropy

from readers import open_dataset


def train(pack: str, epochs: int = 6) -> list[float]:
    """Return the mean loss of each epoch."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = open_dataset(pack, split="train", label="index")
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, len(data.classes), 1)
    ).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = torch.compile(model)
    # drop_last: every batch has the same shape, so the model is compiled once
    batches = data.loader(6, shuffle=True, drop_last=True).to(
        device, dtype=torch.bfloat16, normalize=True, channels_last=True, label_dtype=torch.long
    )
    losses = []
    for _ in range(epochs):
        total = 0.0
        for images, labels in batches:
            with torch.autocast(device, torch.bfloat16):
                loss = cross_entropy(step(images), labels, ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(batches))
    return losses


if __name__ == "__main__":
    print("losses", *(f"{loss:.4f}" for loss in train(sys.argv[1])))
