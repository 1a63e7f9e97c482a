"""`FinishEach`: the steps on the device for batches of several packs, whose images are normalised pack by pack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from readers.contract.errors import RequestError
from readers.contract.fields import LABEL
from readers.finish import Augment, Finish

COUNTS = "rows of each pack"
"""The name of the last part of a batch: the number of rows of each pack."""
Step = Callable[[Finish, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class FinishEach:
    """The steps of `Finish` for each pack, which differ in `normalize` alone. The rows of a batch lie pack by pack."""

    packs: tuple[Finish, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the parts of a batch are, and the number of rows of each pack, which is not delivered."""
        return (*self.packs[0].fields, COUNTS)

    @property
    def augment(self) -> Augment | None:
        """The augmentation, which gets the whole batch."""
        return self.packs[0].augment

    def __call__(self, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the batch as the user gets it."""
        finish, fields, counts = self.packs[0], parts[:-1], parts[-1].tolist()
        done = finish._apply(lambda images: self._each(Finish._filled_numbers, images, counts), finish.image, fields)
        if finish.augment is not None:
            done = finish._augmented(finish.augment, done)
        done = finish._apply(lambda images: self._each(Finish._images, images, counts), finish.image, done)
        return finish._apply(finish._labels, LABEL, done)

    def _each(self, step: Step, images: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        """Return the images after a step, each by its pack."""
        if len(images) != sum(counts):
            raise RequestError(
                f"augment made {len(images)} images of {sum(counts)}, and no longer says which pack each is of; "
                'use normalize=True instead of "each"'
            )
        packs = zip(self.packs, torch.split(images, list(counts)), strict=True)
        return torch.cat([step(finish, part) for finish, part in packs if len(part)])
