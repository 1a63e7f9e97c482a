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
from readers.contract.tiles import size_text

MOST_NAMED = 4
COLLATE_MODULE = "torch.utils.data._utils.collate"
"""PyTorch names this private module in its documentation of `default_collate`, and has no public name for it."""

CollateMap = dict[Any, Callable[..., Any]]


class Sample(NamedTuple):
    """A sample, or a batch, of images and labels."""

    image: torch.Tensor
    label: torch.Tensor


class PlainSample(tuple[torch.Tensor, ...]):
    """A sample, or a batch, of other fields: a tuple in the order of the data set's `fields`, also of a single one."""

    __slots__ = ()

    @classmethod
    def _make(cls, parts: Iterable[torch.Tensor]) -> PlainSample:
        """Return a sample of these parts; `Sample` has the same method."""
        return cls(parts)


AnySample = Sample | PlainSample


class SamplesOfBatch(list[AnySample]):
    """Samples that were read as one batch, and that batch."""

    def __init__(self, batch: AnySample) -> None:
        super().__init__(map(type(batch)._make, zip(*batch, strict=True)))
        self.batch = batch

    def unchanged(self) -> bool:
        """Return whether these are still the samples of the batch, and no others."""
        return len(self) == len(self.batch[0]) and all(
            part[0].data_ptr() == first.data_ptr() for part, first in zip(self.batch, self[0], strict=True)
        )


@cache
def register_collate() -> bool:
    """Make `default_collate`, and so every DataLoader, use the functions below. Return whether that was possible.

    The registry is private to PyTorch. Without it, `default_collate` still makes the same batches of named tuples, but
    copies them once more, and refuses different sizes with an error of its own.
    """
    try:
        module = import_module(COLLATE_MODULE)
        registry, _ = module.default_collate_fn_map, module.collate
        registry.update({Sample: collate_samples, PlainSample: collate_samples})
    except (ImportError, AttributeError, TypeError) as error:
        warnings.warn(
            f"PyTorch {torch.__version__} has no registry of collate functions where readers expects it ({error}): "
            "a DataLoader copies each batch once more. SegDataset.loader() is not affected",
            stacklevel=2,
        )
        return False
    return True


def collate_samples(batch: Sequence[AnySample], *, collate_fn_map: CollateMap | None = None) -> AnySample:
    """Return the samples as one batch, without a second copy where they were read as one.

    Samples of different sizes are refused with an error that names the ways out.
    """
    if isinstance(batch, SamplesOfBatch) and batch.unchanged():
        return batch.batch
    sizes = [size for size in map(_size, batch) if size is not None]
    if len(set(sizes)) > 1:
        rows, size = ("volumes", "(D, H, W)") if len(sizes[0]) == 3 else ("pictures", "(H, W)")
        raise RequestError(
            f"a batch of {len(batch)} samples has {rows} of {different_sizes(sizes)}: open the data set "
            f"with transform=RandomCrop({size}), give the DataLoader collate_fn=collate_lists (both are in "
            "readers), or use batch_size=1"
        )
    collate = import_module(COLLATE_MODULE).collate
    parts = zip(*batch, strict=True)
    return type(batch[0])._make(collate(part, collate_fn_map=collate_fn_map) for part in parts)


def _size(sample: AnySample) -> tuple[int, ...] | None:
    """Return height and width of the first part of a sample that has them, of planes of a volume also the depth."""
    shapes = (tuple(part.shape) for part in sample if isinstance(part, torch.Tensor) and part.ndim > 1)
    return next((shape[-3:] if len(shape) > 3 else shape[-2:] for shape in shapes), None)


def different_sizes(sizes: Iterable[Sequence[int]]) -> str:
    """Return the most frequent of these sizes, for an error about pictures of different sizes."""
    counts = Counter(map(tuple, sizes))
    named = [size_text(size) for size, _ in counts.most_common(MOST_NAMED)]
    order = "depth x height x width" if len(next(iter(counts))) == 3 else "height x width"
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"different sizes ({', '.join(named)}{more}; {order})"


def collate_lists(batch: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """`collate_fn` for a DataLoader: a list of images and a list of labels (or other fields), each of its own size."""
    return tuple(list(part) for part in zip(*batch, strict=True))
