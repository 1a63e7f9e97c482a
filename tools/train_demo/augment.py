"""The augmentation of a batch on the device: flips, brightness and contrast, with random numbers of its own."""

from __future__ import annotations

import torch


class Augment:
    """An augmentation that draws the same numbers for the same batch of an epoch in both pipelines."""

    def __init__(self, device: torch.device, seed: int) -> None:
        self._seed = seed
        self._device = device
        self._dice = torch.Generator(device)

    def begin(self, epoch: int) -> None:
        """Seed the random numbers of an epoch."""
        self._dice.manual_seed((self._seed << 32) + epoch)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mirror half of the pictures with their labels, and change brightness and contrast."""
        drawn = torch.rand(3, len(images), 1, 1, 1, generator=self._dice, device=self._device)
        mirrored, gain, shift = drawn[0] < 0.5, 0.75 + drawn[1] / 2, (drawn[2] - 0.5) / 4
        if labels.dtype == torch.uint16:  # which PyTorch cannot mirror
            labels = labels.long()
        images = torch.where(mirrored, images.flip(3), images)
        labels = torch.where(mirrored[:, 0], labels.flip(2), labels)
        return (images * gain + shift).clamp_(0, 1).to(images.dtype), labels
