"""torchdata's StatefulDataLoader with an `Order` as its sampler: worker processes, and an exact state.

python docs/recipes/stateful_dataloader.py PACK [STATE]      # goes on from the file STATE, if it exists
"""

import sys
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torchdata.stateful_dataloader import StatefulDataLoader

from readers import Order, open_dataset

if __name__ == "__main__":
    pack, saved = (*sys.argv[1:], "")[:2]
    data = open_dataset(pack, split="train", label="index")
    order = Order(data, seed=7)  # add rank=…, world_size=… for several ranks
    loader = StatefulDataLoader(data, batch_size=3, sampler=order, num_workers=2)
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, len(data.classes), 3, padding=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if saved and Path(saved).exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
    for epoch in range(state["epoch"] if saved and Path(saved).exists() else 0, 3):
        for step, (images, labels) in enumerate(loader):  # each full pass is the next epoch
            loss = cross_entropy(model(images / 255), labels.long(), ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} loss {loss:.6f}")
            if saved and (epoch, step) == (1, 1):
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loader": loader.state_dict(),
                }
                torch.save({**state, "epoch": epoch}, saved)
