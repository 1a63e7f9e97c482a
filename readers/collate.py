"""Samples, and batches of them: not copied where they were read as one, and refused where their sizes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from readers.contract.errors import RequestError

MOST_NAMED = 4


class Sample(NamedTuple):
    """A sample, or a batch, of a data set whose rows are all of one size."""

    image: torch.Tensor
    label: torch.Tensor


class Together(list[Sample]):
    """Samples that were read as one batch, and the batch."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        super().__init__(map(Sample, images, labels))
        self.batch = Sample(images, labels)

    def whole(self) -> bool:
        """Whether these are still the samples of the batch, and no others."""
        return len(self) == len(self.batch.image) and all(
            part[0].data_ptr() == first.data_ptr() for part, first in zip(self.batch, self[0], strict=True)
        )


def collate_together(batch: Sequence[Sample], *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Sample:
    """The samples as one batch, without a second copy where they were read as one."""
    if isinstance(batch, Together) and batch.whole():
        return batch.batch
    return Sample(*(collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch, strict=True)))


class NativeSample(NamedTuple):
    """A sample, or a batch, of a data set whose rows have each a size of their own.

    PyTorch's own `default_collate` knows it, so that a DataLoader without a `collate_fn` tells what to do.
    """

    image: torch.Tensor
    label: torch.Tensor


def collate_native(
    batch: Sequence[NativeSample], *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None
) -> NativeSample:
    """The samples as one batch, where all are of one size."""
    sizes = [tuple(sample.image.shape[-2:]) for sample in batch]
    if len(set(sizes)) > 1:
        raise RequestError(
            f"a batch of {len(batch)} samples has pictures of {named_sizes(sizes)}: open the data set "
            "with transform=RandomCrop((H, W)), give the DataLoader collate_fn=collate_lists (both are in "
            "readers), or take batch_size=1"
        )
    return NativeSample(*(collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch, strict=True)))


def named_sizes(sizes: Iterable[Sequence[int]]) -> str:
    """What is wrong with pictures of these sizes, for an error."""
    counts = Counter(map(tuple, sizes))
    named = [f"{height}x{width}" for (height, width), _ in counts.most_common(MOST_NAMED)]
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"different sizes ({', '.join(named)}{more}; height x width)"


def collate_lists(batch: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """`collate_fn` of a DataLoader: a list of images and one of labels, each of its own size."""
    return tuple(list(part) for part in zip(*batch, strict=True))


default_collate_fn_map[Sample] = collate_together
default_collate_fn_map[NativeSample] = collate_native
