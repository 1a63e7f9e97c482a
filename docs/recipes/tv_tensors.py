"""torchvision v2: image and label as tv_tensors, flipped and cropped in the same way; per sample, or on the device.

python docs/recipes/tv_tensors.py PACK
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torchvision.transforms import v2
from torchvision.tv_tensors import Image, Mask

from readers import open_dataset

augment = v2.Compose(
    [
        v2.RandomRotation(10, fill={Image: 0, Mask: 255}),  # pixels from outside the picture are ignored
        v2.RandomResizedCrop((48, 48), scale=(0.5, 1.0), antialias=True),  # a Mask is always resized with nearest
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.3, 0.3, 0.3),  # does not change a Mask
    ]
)


def sample(image: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Use it as `transform=` of a data set. Random numbers follow `torch.manual_seed`; DataLoader workers differ."""
    return augment(Image(image), Mask(label))


def batch(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Use it as `augment=` of `.to()`. It calls the transform for each picture; one call for all would draw once."""
    parts = [sample(image, label) for image, label in zip(images, labels, strict=True)]
    return torch.stack([image for image, _ in parts]), torch.stack([label for _, label in parts])


if __name__ == "__main__":
    images, labels = next(iter(torch.utils.data.DataLoader(open_dataset(sys.argv[1], "train", "index", sample), 3)))
    print("samples", images.dtype, tuple(images.shape), tuple(labels.shape))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = open_dataset(sys.argv[1], split="train", label="index")
    loader = data.loader(3, shuffle=True, seed=7).to(device, normalize=True, label_dtype=torch.long, augment=batch)
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
