"""`Finish`: what is done to a batch on the device: images to numbers, augmentation, normalisation, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from readers.contract.errors import RequestError

Augment = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Takes a batch of images, as numbers from 0 to 1, and its labels as they travel, as indices or stored planes, and
returns both."""
MeanStd = tuple[Sequence[float], Sequence[float]]
"""Mean and standard deviation of each channel, of pixels from 0 to 1."""


@dataclass(frozen=True)
class Finish:
    """The steps on the device: images as numbers, augmented, normalised; labels as planes or numbers."""

    dtype: torch.dtype | None = None
    normalize: MeanStd | None = None
    channels_last: bool = False
    classes: int | None = None
    """The number of planes into which index labels are expanded."""
    label_dtype: torch.dtype | None = None
    augment: Augment | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise RequestError(f"dtype={self.dtype}: expected a floating-point type, or None to leave images as stored")
        if self.normalize is not None and not all(deviation > 0 for deviation in self.normalize[1]):
            raise RequestError(f"normalize={self.normalize}: expected (means, deviations), deviations above 0")

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the batch as the user gets it; the same numbers on every device, to rounding."""
        dtype = self.dtype or (torch.float32 if self.normalize or self.augment else images.dtype)
        if dtype != images.dtype or self.normalize or self.augment:
            images = self._numbers(images, dtype)
        if self.augment is not None:
            images, labels = self.augment(images, labels)
        if self.normalize is not None:
            mean, deviation = (_channels(tuple(map(float, values)), images.device) for values in self.normalize)
            images = ((images - mean) / deviation).to(dtype)
        if self.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return images, self._labels(labels)

    def _numbers(self, images: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return pixels from 0 to 1. Images that are normalised later are rounded to the wanted type only then."""
        exact = torch.float32 if self.normalize is not None else dtype
        if images.dtype.is_floating_point:
            return images.to(exact)
        return (images.to(torch.float32) / 255).to(exact)

    def _labels(self, labels: torch.Tensor) -> torch.Tensor:
        if self.classes is not None:
            numbers = torch.arange(self.classes, dtype=labels.dtype, device=labels.device)
            labels = labels.unsqueeze(1) == numbers.view(1, -1, 1, 1)  # an ignored pixel is 0 in every plane
            return labels.to(self.label_dtype or torch.uint8)
        return labels if self.label_dtype is None else labels.to(self.label_dtype)


@lru_cache(maxsize=16)
def _channels(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """Return a number for each channel. Cached, because a copy to a GPU waits for the GPU."""
    return torch.tensor(values, device=device).view(1, -1, 1, 1)
