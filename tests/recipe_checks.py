"""Checks of a recipe that augments, run as a program: `recipe_checks.py RECIPE PACK` prints JSON.

In PACK, each pixel of an image has the colour of its class, so the images show whether labels moved with them.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any

import torch

from readers import SegDataset, open_dataset

Batches = list[tuple[torch.Tensor, torch.Tensor]]
RED, BLACK = 3, 2
"""Classes whose colours differ most, in the first channel."""


def on_device(recipe: Any, data: SegDataset, epoch: int, state: Mapping[str, Any] | None, most: int | None) -> Any:
    """Return at most `most` batches of an epoch, through `.to(…, augment=…)`, and the state after them."""
    augment = recipe.batch if hasattr(recipe, "batch") else recipe.augment
    batches = data.loader(3, shuffle=True, seed=7).to("cpu", augment=augment)
    if state is None:
        batches.set_epoch(epoch)
    else:
        batches.load_state_dict(state)
    got = list(islice(batches, most))
    return got, batches.state_dict()


def by_dali(recipe: Any, data: SegDataset, epoch: int, state: Mapping[str, Any] | None, most: int | None) -> Any:
    """Return the same through the recipe's pipeline."""
    loader = data.loader(3, shuffle=True, seed=7, output="numpy")
    if state is None:
        loader.set_epoch(epoch)
    else:
        loader.load_state_dict(state)
    source = recipe.Source(loader)
    pipeline = recipe.augmented(source, "cpu", (0.0,) * 3, (1.0,) * 3, batch_size=3, device_id=None)
    got, after = [], None
    for images, labels in recipe.one_epoch(pipeline):
        got.append((images, labels[..., 0]))
        after = source.states.popleft()
        if len(got) == most:
            break
    return got, after


def by_sample(recipe: Any, data: SegDataset, epoch: int, state: Mapping[str, Any] | None, most: int | None) -> Any:
    """Return the same through the data set's transform, which follows `torch.manual_seed`; it has no state."""
    torch.manual_seed(epoch)
    samples = open_dataset(data.root, data.split, label="index", transform=recipe.augment)
    loader = torch.utils.data.DataLoader(samples, 3)
    return [(images / 255, labels) for images, labels in islice(loader, most)], None


WAYS = {"albumentations_transform": by_sample, "dali": by_dali, "kornia_augment": on_device, "tv_tensors": on_device}


def same(first: Batches, second: Batches) -> bool:
    """Return whether both have the same pixels."""
    pairs = zip(first, second, strict=True)
    return all(a.equal(b) and labels.equal(others) for (a, labels), (b, others) in pairs)


def contrast(batches: Batches) -> float:
    """Return how much redder red pixels are than black ones: near 1 if labels lie on their pixels, else near 0."""
    images, labels = (torch.cat([batch[part] for batch in batches]) for part in (0, 1))
    red = images[:, 0]
    return float(red[labels == RED].mean() - red[labels == BLACK].mean())


def main(name: str, pack: str) -> None:
    """Print the results."""
    recipe, way, data = importlib.import_module(name), WAYS[name], open_dataset(pack, "train", label="index")
    first, _ = way(recipe, data, 1, None, None)
    again, _ = way(recipe, data, 1, None, None)
    other, _ = way(recipe, data, 2, None, None)
    begun, state = way(recipe, data, 1, None, 2)
    rest, _ = way(recipe, data, 1, state, None) if state else (first[2:], None)
    found = {
        "batches": len(first),
        "again": same(first, again),
        "other": same(first, other),
        "resumed": same(first, [*begun, *rest]),
        "values": sorted({value for _, labels in first for value in labels.flatten().tolist()}),
        "contrast": contrast(first),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
