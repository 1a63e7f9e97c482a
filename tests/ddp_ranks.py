"""Train by DDP with gloo: `python tests/ddp_ranks.py OPTIONS`, a file of JSON, runs each rank as a process.

Rank 0 writes what all ranks received: the pixels of each row as a number, epoch by epoch. The ranks are forked, so that
PyTorch is imported once; each opens the pack by itself.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from readers import Window, open_dataset


def train(options: dict[str, Any], rank: int) -> dict[str, Any]:
    """Train two epochs; return what this rank received, and its model."""
    dataset = open_dataset(options["root"], "train", **options["open"])
    block, blocks = options["window"]
    window = Window(block, blocks, apart=True)
    loader = dataset.loader(options["batch"], shuffle=window, rank=rank, world_size=options["ranks"], threads=1)
    torch.manual_seed(rank)  # DDP gives all ranks the model of rank 0
    model = DistributedDataParallel(torch.nn.Conv2d(3, 1, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    epochs = []
    for _ in range(2):
        epochs.append([zlib.crc32(image.numpy()) for images, _ in loader for image in step(model, optimiser, images)])
    weights = [value for part in model.parameters() for value in part.flatten().tolist()]
    return {"epochs": epochs, "weights": weights}


def step(model: torch.nn.Module, optimiser: torch.optim.Optimizer, images: torch.Tensor) -> torch.Tensor:
    """Train one step, in which gloo adds the gradients of all ranks; return the images."""
    optimiser.zero_grad()
    model(images / 255).square().mean().backward()
    optimiser.step()
    return images


def take_part(options: dict[str, Any], rank: int) -> None:
    """Be one rank: train, and collect what all ranks received."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{options['meet']}", rank=rank, world_size=options["ranks"])
    found: list[dict[str, Any]] = [{}] * options["ranks"]
    distributed.all_gather_object(found, train(options, rank))
    if rank == 0:
        Path(options["result"]).write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


def main() -> int:
    options = json.loads(Path(sys.argv[1]).read_text())
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=take_part, args=(options, rank), daemon=True) for rank in range(options["ranks"])]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    return sum(rank.exitcode != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
