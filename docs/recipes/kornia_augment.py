"""Kornia: whole batches augmented on the device, each picture with its own random numbers, images and labels together.

python docs/recipes/kornia_augment.py PACK
"""

import sys

import torch
from kornia import augmentation
from kornia.constants import Resample
from torch.nn.functional import cross_entropy

from readers import open_dataset

chain = augmentation.AugmentationSequential(
    augmentation.RandomRotation(10.0),
    augmentation.RandomResizedCrop((48, 48), scale=(0.5, 1.0)),
    augmentation.RandomHorizontalFlip(),
    augmentation.ColorJitter(0.3, 0.3, 0.3, 0.0),  # does not change labels
    data_keys=["image", "mask"],
    extra_args={"mask": {"resample": Resample.NEAREST, "align_corners": None}},
)


def augment(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Use it as `augment=` of `.to()`. Kornia fills with 0, so inside the transform 0 is the ignored number."""
    images, masks = chain(images, (labels + 1).unsqueeze(1).float())  # uint8: 255 + 1 is 0, and 0 - 1 is 255
    return images, masks.squeeze(1).to(labels.dtype) - 1


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = open_dataset(sys.argv[1], split="train", label="index")
    loader = data.loader(3, shuffle=True, seed=7).to(device, normalize=True, label_dtype=torch.long, augment=augment)
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, len(data.classes), 3, padding=1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(4):
        losses = []
        for images, labels in loader:
            loss = cross_entropy(model(images), labels, ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.6f}")
