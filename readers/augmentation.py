"""`Augmentation`: what a loader or a data set does to rows while they are read: windows, turns, colours, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from readers.colour import Colour
from readers.contract.errors import RequestError
from readers.contract.fields import Field, Sides
from readers.crop import CenterCrop, CropAndFlip, Flip
from readers.statistics import MeanStd
from readers.tone import Tone


@dataclass(frozen=True)
class Augmentation:
    """The options `crop`, `flip`, `turn`, `colour`, `normalize` and `dtype` of a loader.

    With `open_dataset(…, transform=Augmentation(crop=(512, 512), flip=True))` a DataLoader of PyTorch gets such
    samples, whose random numbers follow from PyTorch's.
    """

    crop: Sides | CenterCrop | None = None
    flip: Flip = False
    turn: bool = False
    colour: Colour | None = None
    normalize: MeanStd | bool = False
    dtype: torch.dtype | None = None

    def cut(self, sides: Sequence[int | None]) -> CropAndFlip | None:
        """Return how windows of rows with these sides are cut; None if whole rows are read unchanged."""
        return CropAndFlip.of(self.crop, self.flip, self.turn, sides)

    def tone(self, fields: Sequence[Field], training: MeanStd | None) -> Tone | None:
        """Return the tone of the picture among the fields. `normalize=True` means the mean and deviation `training`."""
        return Tone.of(fields, self.colour, self.normalize, self.dtype, training)

    def __call__(self, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Refuse samples that were read already."""
        raise RequestError(
            "an Augmentation is done while rows are read: give it to open_dataset(transform=…) itself, not inside of "
            "another transform"
        )
