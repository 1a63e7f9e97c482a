"""DALI: batches are the external source of a pipeline that flips and crops images and labels in the same way.

python docs/recipes/dali.py PACK [gpu]                       # runs on the CPU, or with `gpu` on the GPU
"""

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def
from torch.nn.functional import cross_entropy

from readers import Loader, open_dataset


class Source:
    """Batches, and random numbers for each picture. DALI's own random numbers start again with every pipeline. These
    follow from seed, epoch and position, so a resumed run gets the same pixels."""

    def __init__(self, loader: Loader) -> None:
        self.loader, self.states = loader, deque[dict[str, Any]]()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for images, labels in self.loader:
            self.states.append(state := self.loader.state_dict())  # DALI reads ahead: the state after this batch
            draw = np.random.default_rng([state["seed"], state["epoch"], state["consumed"], self.loader.order.rank])
            yield images, labels, *draw.random((3, len(images)), np.float32), draw.integers(0, 2, len(images), np.int32)


@pipeline_def(num_threads=2)
def augmented(source: Source, device: str, mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[Any, ...]:
    images, labels, x, y, light, flip = fn.external_source(source, 6, layout=["CHW", "HW", *[""] * 4], cycle="raise")
    images, labels = (part.gpu() if device == "gpu" else part for part in (images, labels))
    window = {"crop": (48, 48), "crop_pos_x": x, "crop_pos_y": y}
    images = fn.brightness(fn.transpose(images, perm=[1, 2, 0]) / 255, brightness=0.7 + 0.6 * light)
    images = fn.crop_mirror_normalize(images, mean=[*mean], std=[*std], mirror=flip, **window)
    return images, fn.flip(fn.crop(fn.expand_dims(labels, axes=2, new_axis_names="C"), **window), horizontal=flip)


def one_epoch(pipeline: Any) -> Iterator[tuple[torch.Tensor, ...]]:
    try:
        while True:  # copied, because DALI reuses its memory for the next batches
            yield tuple(torch.from_dlpack(part.as_tensor()).clone() for part in pipeline.run())
    except StopIteration:
        pipeline.reset()


if __name__ == "__main__":
    data, device = open_dataset(sys.argv[1], split="train", label="index"), (*sys.argv[2:], "cpu")[0]
    source = Source(data.loader(3, shuffle=True, seed=7, output="numpy"))
    pipeline = augmented(source, device, data.mean, data.std, batch_size=3, device_id=0 if device == "gpu" else None)
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, len(data.classes), 3, padding=1).to("cuda" if device == "gpu" else "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(4):
        losses = []
        for images, labels in one_epoch(pipeline):
            state = source.states.popleft()  # for a checkpoint: pass it to `loader.load_state_dict`
            loss = cross_entropy(model(images), labels[..., 0].long(), ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {state['epoch']} consumed {state['consumed']} loss {sum(losses) / len(losses):.6f}")
