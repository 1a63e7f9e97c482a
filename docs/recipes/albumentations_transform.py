"""Albumentations: its transforms as `transform=` of a data set, in the workers of a DataLoader.

python docs/recipes/albumentations_transform.py PACK
"""

import sys

import albumentations
import torch
from torch.nn.functional import cross_entropy

from readers import Order, open_dataset

chain = albumentations.Compose(
    [
        albumentations.Rotate(10, border_mode=0, fill_mask=255),  # pixels from outside the picture are ignored
        albumentations.RandomResizedCrop((48, 48), scale=(0.5, 1.0), mask_interpolation=0),  # 0: nearest
        albumentations.HorizontalFlip(),
        albumentations.ColorJitter(0.3, 0.3, 0.3, 0.0),  # does not change labels
    ]
)


def augment(image: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Call the transforms with height and width first. Their random numbers follow `torch.manual_seed`."""
    chain.set_random_seed(int(torch.randint(2**31, ())))
    both = chain(image=image.permute(1, 2, 0).numpy(), mask=label.numpy())
    return torch.from_numpy(both["image"]).permute(2, 0, 1), torch.from_numpy(both["mask"])


if __name__ == "__main__":
    data = open_dataset(sys.argv[1], split="train", label="index", transform=augment)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(data, 3, sampler=Order(data, seed=7), num_workers=2)
    model = torch.nn.Conv2d(3, len(data.classes), 3, padding=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(4):
        losses = []
        for images, labels in loader:
            loss = cross_entropy(model(images / 255), labels.long(), ignore_index=data.classes.ignore_index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.6f}")
