"""Accelerate: the loader gets its rank, and `save_state` and `load_state` keep its position, also inside an epoch.

python docs/recipes/accelerate_loop.py PACK [CHECKPOINT]       # or: accelerate launch docs/recipes/accelerate_loop.py …
"""

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy

from readers import open_dataset

if __name__ == "__main__":
    pack, checkpoint = (*sys.argv[1:], "")[:2]
    accelerator = Accelerator()
    data = open_dataset(pack, split="train", label="index")
    loader = data.loader(3, shuffle=True, rank=accelerator.process_index, world_size=accelerator.num_processes)
    batches = loader.to(
        accelerator.device, normalize=True, label_dtype=torch.long
    )  # already on the device: do not pass it to `prepare`
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, len(data.classes), 3, padding=1)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    accelerator.register_for_checkpointing(batches)
    if checkpoint and Path(checkpoint).exists():
        accelerator.load_state(checkpoint)
    for epoch in range(loader.order.epoch, 3):
        batches.set_epoch(epoch)  # a resumed epoch goes on where it stopped
        for step, (images, labels) in enumerate(batches):
            loss = cross_entropy(model(images), labels, ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            accelerator.print(f"epoch {epoch} loss {loss:.6f}")
            if checkpoint and (epoch, step) == (1, 1):
                accelerator.save_state(checkpoint)
