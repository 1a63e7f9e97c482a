"""Batches of native samples: stacked where their sizes are equal; else refused with advice, or kept as lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from readers.contract.errors import RequestError

MOST_NAMED = 4


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
    sizes = Counter(tuple(sample.image.shape[-2:]) for sample in batch)
    if len(sizes) > 1:
        named = [f"{height}x{width}" for (height, width), _ in sizes.most_common(MOST_NAMED)]
        more = f" and {len(sizes) - MOST_NAMED} more" if len(sizes) > MOST_NAMED else ""
        raise RequestError(
            f"a batch of {len(batch)} samples has pictures of different sizes ({', '.join(named)}{more}; "
            "height x width): open the data set with transform=RandomCrop((H, W)), give the DataLoader "
            "collate_fn=collate_lists (both are in readers), or take batch_size=1"
        )
    return NativeSample(*(collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch, strict=True)))


def collate_lists(batch: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """`collate_fn` of a DataLoader: a list of images and one of labels, each of its own size."""
    return tuple(list(part) for part in zip(*batch, strict=True))


default_collate_fn_map[NativeSample] = collate_native
