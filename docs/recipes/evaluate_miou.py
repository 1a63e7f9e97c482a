"""The mIoU of a whole split, each row exactly once, on one rank or many. Ranks may get different numbers of batches.

python docs/recipes/evaluate_miou.py PACK                    # or, on 2 processes:
torchrun --nproc-per-node 2 docs/recipes/evaluate_miou.py PACK
"""

import os
import sys

import torch
import torch.distributed as dist

from readers import open_dataset

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@torch.inference_mode()
def confusion(model: torch.nn.Module, pack: str, device: str) -> torch.Tensor:
    """Return the pixels of each true class (row) by predicted class (column), over all ranks."""
    val = open_dataset(pack, split="val", label="index")
    classes = len(val.classes)
    counts = torch.zeros(classes**2, dtype=torch.long, device=device)
    loader = val.loader(4, rank=RANK, world_size=WORLD)  # neither drop_last nor pad: each row comes once
    for images, labels in loader.to(device, normalize=True, label_dtype=torch.long):
        found = model.eval()(images).argmax(1)
        known = labels < classes  # ignored pixels have a number above all classes
        counts += torch.bincount(labels[known] * classes + found[known], minlength=classes**2)
    if WORLD > 1:
        dist.all_reduce(counts)  # once, at the end: no rank waits for another between batches
    return counts.view(classes, classes)


if __name__ == "__main__":
    if WORLD > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    table = confusion(torch.nn.Conv2d(3, 8, 3, padding=1), sys.argv[1], "cpu")  # your model; here with 8 classes
    union = table.sum(0) + table.sum(1) - table.diag()
    if RANK == 0:
        print(f"mIoU {(table.diag() / union)[union > 0].mean():.4f} pixels per class {table.sum(1).tolist()}")
    if WORLD > 1:
        dist.barrier()  # no rank leaves while another still receives
        dist.destroy_process_group()
