"""DistributedDataParallel: ranks share one global order, and a run can be resumed with another number of ranks.

torchrun --nproc-per-node 2 docs/recipes/ddp.py PACK [CHECKPOINT] [STEPS]    # stops after STEPS steps
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from readers import open_dataset

pack, checkpoint, steps = (*sys.argv[1:], "", "", "")[:3]
dist.init_process_group("gloo")  # on GPUs: "nccl", and a device for each rank
rank, world_size = dist.get_rank(), dist.get_world_size()
data = open_dataset(pack, split="train", label="index")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Conv2d(3, len(data.classes), 3, padding=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = data.loader(3, shuffle=True, seed=7, rank=rank, world_size=world_size)
batches = loader.to("cpu", normalize=True, label_dtype=torch.long)
if Path(checkpoint).is_file():
    state = torch.load(checkpoint)  # one state for all ranks, also for another number of ranks
    model.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"])
    batches.load_state_dict(state["loader"])
seen = torch.zeros(256, dtype=torch.long)  # pixels of each class, as `packer stats` prints them
for step, (images, labels) in enumerate(batches, 1):
    loss = cross_entropy(model(images), labels, ignore_index=data.classes.ignore_index)
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    seen += torch.bincount(labels.flatten(), minlength=256)
    if str(step) == steps:
        break
dist.all_reduce(seen)
if rank == 0:
    parts = {"model": model, "optimizer": optimizer, "loader": batches}
    torch.save({name: part.state_dict() for name, part in parts.items()}, checkpoint or "last.pt")
    print(
        f"padding {loader.padding} loss {loss:.4f} state {batches.state_dict()} seen {seen[seen > 0].tolist()}",
        flush=True,
    )
dist.barrier()  # no rank ends before another one has saved
del loss, model, optimizer  # they use the group: a process that ends with both aborts now and then
dist.destroy_process_group()
