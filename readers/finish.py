"""`Finish`: what is done to a batch on the device: images to numbers, augmentation, normalisation, labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.statistics import MeanStd

Augment = Callable[..., Any]
"""Takes the fields of a batch: images as numbers from 0 to 1, labels as they travel, as indices or stored planes.
Returns as many; a single one need not be in a tuple."""


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
    fields: tuple[str, ...] = (IMAGE, LABEL)
    """The fields that the parts of a batch are."""
    image: str = IMAGE
    """The field that counts as the image."""
    range: tuple[float, ...] | None = None
    """The pixels of images that count as 0 and 1; None: 0 and 255 for bytes, other numbers are kept."""
    no_data: float | None = None
    """The number of pixels without data, which are the mean, so that they are 0 when they are normalised."""

    times: int = 1
    """The dates of images that are time series: (N, T, C, H, W)."""

    def __post_init__(self) -> None:
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise RequestError(f"dtype={self.dtype}: expected a floating-point type, or None to leave images as stored")
        if self.normalize is not None and not all(deviation > 0 for deviation in self.normalize[1]):
            raise RequestError(f"normalize={self.normalize}: expected (means, deviations), deviations above 0")
        if self.channels_last and self.times > 1:
            raise RequestError("channels_last=True: images are time series, for which PyTorch has no such layout")
        self._check_fields(
            self.image, dtype=self.dtype, normalize=self.normalize, channels_last=self.channels_last or None
        )
        self._check_fields(LABEL, classes=self.classes, label_dtype=self.label_dtype)

    def _check_fields(self, needed: str, **options: object) -> None:
        """Refuse options for a field that the batches do not have."""
        names = [name for name, value in options.items() if value is not None]
        if names and needed not in self.fields:
            raise RequestError(f"{names[0]}= is for the field {needed!r}, which is not read: fields={self.fields!r}")

    def __call__(self, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the batch as the user gets it; the same numbers on every device, to rounding."""
        parts = self._apply(self._filled_numbers, self.image, parts)
        if self.augment is not None:
            parts = self._augmented(self.augment, parts)
        parts = self._apply(self._images, self.image, parts)
        return self._apply(self._labels, LABEL, parts)

    def _apply(
        self, step: Callable[[torch.Tensor], torch.Tensor], field: str, parts: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        return tuple(step(part) if name == field else part for name, part in zip(self.fields, parts, strict=True))

    def _augmented(self, augment: Augment, parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        augmented = augment(*parts)
        augmented = (augmented,) if isinstance(augmented, torch.Tensor) else tuple(augmented)
        if len(augmented) != len(self.fields):
            raise RequestError(f"augment returned {len(augmented)} parts; expected one for each of {self.fields!r}")
        return augmented

    def _filled_numbers(self, images: torch.Tensor) -> torch.Tensor:
        """Return the numbers of images. If they are normalised, pixels without data are the mean from here on."""
        numbers = self._numbers(images)
        if self.no_data is None or self.normalize is None:
            return numbers
        missing = torch.isnan(images) if math.isnan(self.no_data) else images == self.no_data
        mean = _channels(tuple(map(float, self.normalize[0])), images.device, self._sides(images))
        return torch.where(missing, mean, numbers)

    def _numbers(self, images: torch.Tensor) -> torch.Tensor:
        """Return pixels from 0 to 1, if an option needs them. If they are normalised later, they are rounded to the
        wanted type only then."""
        if not (self.normalize or self.augment) and self.dtype in (None, images.dtype):
            return images
        exact = torch.float32 if self.normalize is not None else self.dtype or torch.float32
        low, high = self.range or ((0, 255) if images.dtype == torch.uint8 else (0, 1))
        if (low, high) == (0, 1):
            return images.to(exact)
        numbers = images.to(torch.float32)
        return ((numbers - low if low else numbers) / (high - low)).to(exact)

    def _sides(self, images: torch.Tensor) -> int:
        """Return how many axes of a batch of images come after the channels."""
        return images.ndim - 2 - (self.times > 1)

    def _images(self, images: torch.Tensor) -> torch.Tensor:
        if self.normalize is not None:
            sides = self._sides(images)
            parts = (_channels(tuple(map(float, values)), images.device, sides) for values in self.normalize)
            mean, deviation = parts
            images = ((images - mean) / deviation).to(self.dtype or torch.float32)
        last = torch.channels_last_3d if images.ndim == 5 else torch.channels_last
        return images.contiguous(memory_format=last) if self.channels_last else images

    def _labels(self, labels: torch.Tensor) -> torch.Tensor:
        if self.classes is not None:
            numbers = torch.arange(self.classes, device=labels.device).to(labels.dtype)
            sides = [1] * (labels.ndim - 1)
            labels = labels.unsqueeze(1) == numbers.view(1, -1, *sides)  # an ignored pixel is 0 in every plane
            return labels.to(self.label_dtype or torch.uint8)
        return labels if self.label_dtype is None else labels.to(self.label_dtype)


@lru_cache(maxsize=16)
def _channels(values: tuple[float, ...], device: torch.device, sides: int) -> torch.Tensor:
    """Return a number for each channel. Cached, because a copy to a GPU waits for the GPU."""
    return torch.tensor(values, device=device).view(-1, *[1] * sides)
