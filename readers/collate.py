"""Samples, and how a DataLoader makes batches of them: without a second copy where they were read as one batch."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import torch

from readers.contract.errors import RequestError

MOST_NAMED = 4
COLLATE_MODULE = "torch.utils.data._utils.collate"
"""PyTorch names this private module in its documentation of `default_collate`, and has no public name for it."""

CollateMap = dict[Any, Callable[..., Any]]


class Sample(NamedTuple):
    """A sample, or a batch, of a data set whose rows are all of one size."""

    image: torch.Tensor
    label: torch.Tensor


class SamplesOfBatch(list[Sample]):
    """Samples that were read as one batch, and that batch."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        super().__init__(map(Sample, images, labels))
        self.batch = Sample(images, labels)

    def unchanged(self) -> bool:
        """Return whether these are still the samples of the batch, and no others."""
        return len(self) == len(self.batch.image) and all(
            part[0].data_ptr() == first.data_ptr() for part, first in zip(self.batch, self[0], strict=True)
        )


class NativeSample(NamedTuple):
    """A sample, or a batch, of a data set whose rows have each a size of their own.

    A DataLoader without a `collate_fn` refuses samples of different sizes with an error that names the ways out.
    """

    image: torch.Tensor
    label: torch.Tensor


@cache
def register_collate() -> bool:
    """Make `default_collate`, and so every DataLoader, use the functions below. Return whether that was possible.

    The registry is private to PyTorch. Without it, `default_collate` still makes the same batches of named tuples, but
    copies them once more, and refuses different sizes with an error of its own.
    """
    try:
        module = import_module(COLLATE_MODULE)
        registry, _ = module.default_collate_fn_map, module.collate
        registry.update({Sample: collate_samples, NativeSample: collate_native})
    except (ImportError, AttributeError, TypeError) as error:
        warnings.warn(
            f"PyTorch {torch.__version__} has no registry of collate functions where readers expects it ({error}): "
            "a DataLoader copies each batch once more. SegDataset.loader() is not affected",
            stacklevel=2,
        )
        return False
    return True


def collate_samples(batch: Sequence[Sample], *, collate_fn_map: CollateMap | None = None) -> Sample:
    """Return the samples as one batch, without a second copy where they were read as one."""
    if isinstance(batch, SamplesOfBatch) and batch.unchanged():
        return batch.batch
    return Sample(*_collate_parts(batch, collate_fn_map))


def collate_native(batch: Sequence[NativeSample], *, collate_fn_map: CollateMap | None = None) -> NativeSample:
    """Return the samples as one batch if they all have the same size."""
    sizes = [tuple(sample.image.shape[-2:]) for sample in batch]
    if len(set(sizes)) > 1:
        raise RequestError(
            f"a batch of {len(batch)} samples has pictures of {different_sizes(sizes)}: open the data set "
            "with transform=RandomCrop((H, W)), give the DataLoader collate_fn=collate_lists (both are in "
            "readers), or use batch_size=1"
        )
    return NativeSample(*_collate_parts(batch, collate_fn_map))


def _collate_parts(batch: Sequence[Sequence[Any]], collate_fn_map: CollateMap | None) -> list[Any]:
    collate = import_module(COLLATE_MODULE).collate
    return [collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch, strict=True)]


def different_sizes(sizes: Iterable[Sequence[int]]) -> str:
    """Return the most frequent of these sizes, for an error about pictures of different sizes."""
    counts = Counter(map(tuple, sizes))
    named = [f"{height}x{width}" for (height, width), _ in counts.most_common(MOST_NAMED)]
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"different sizes ({', '.join(named)}{more}; height x width)"


def collate_lists(batch: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """`collate_fn` for a DataLoader: a list of images and a list of labels, each of its own size."""
    return tuple(list(part) for part in zip(*batch, strict=True))
