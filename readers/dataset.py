"""`SegDataset`: a packed data set as a PyTorch data set; one subclass per format, chosen by `open_dataset`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from readers.collate import NativeSample
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError, RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.contract.manifest import ALL, Manifest
from readers.contract.onehot import collapse, expand
from readers.pack import Pack

LabelForm = Literal["onehot", "index"]
Verify = Literal["digest"]
Sample = tuple[torch.Tensor, torch.Tensor]
Transform = Callable[[torch.Tensor, torch.Tensor], Any]


class SegDataset(Dataset[Any]):
    """Rows of one split as (image, label) tensors of their own memory.

    `label` is "onehot" (C,H,W) or "index" (H,W), by default as stored; `transform(image, label)` is applied to each
    sample and what it returns is delivered. Rows that were packed with `--size native` have each a size of their own.
    """

    storage: ClassVar[str | None] = None

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None = None,
        label: LabelForm | None = None,
        transform: Transform | None = None,
        verify: Verify | None = None,
    ) -> None:
        self._open(Path(root).absolute(), None, split, label, transform, verify)

    def _open(
        self,
        root: Path,
        generation: int | None,
        split: str | None,
        label: LabelForm | None,
        transform: Transform | None,
        verify: Verify | None,
    ) -> None:
        if verify not in (None, "digest"):
            raise RequestError(f'verify={verify!r} is neither None nor "digest"')
        self._pack = Pack.open(root, generation, digests=verify == "digest")
        self._verify = verify
        self._split = split
        self._rows = _rows(self._pack, split)
        self.root = root
        self.transform = transform
        self.label = _label_form(self._pack.manifest, label)
        if self.storage not in (None, self._pack.manifest.storage):
            right = DATASETS[self._pack.manifest.storage].__name__
            raise RequestError(
                f"{root}: is stored as {self._pack.manifest.storage}, not {self.storage}; use {right} or open_dataset"
            )

    @property
    def manifest(self) -> Manifest:
        """What the pack says of itself."""
        return self._pack.manifest

    @property
    def classes(self) -> ClassTable:
        """The classes in order; `classes.names`, `classes.ignore_index`."""
        return self._pack.manifest.classes

    @property
    def split(self) -> str:
        """The split's name; "all" for every row."""
        return self._split or self._pack.manifest.splits[0].name

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int | slice) -> Any:
        """One sample, or the list of samples of a slice."""
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        return self.__getitems__([index])[0]

    def __iter__(self) -> Iterator[Any]:
        """Every sample in order."""
        return (self[index] for index in range(len(self)))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Many samples at once; the stock DataLoader asks this way."""
        return [self._deliver(sample) for sample in self._read([self._row(index) for index in indices])]

    def key(self, index: int) -> str:
        """The key of a sample: its name in the raw folder."""
        shard, place = self._pack.table.locate(self._row(index))
        return self._pack.shard(shard).key(place)

    def size(self, index: int) -> tuple[int, int]:
        """Height and width of a sample as it is stored."""
        shard, place = self._pack.table.locate(self._row(index))
        return self._pack.shard(shard).size(place)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({str(self.root)!r}, split={self.split!r}, label={self.label!r}, rows={len(self)})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Path and identity only; the copy opens the same generation again, also when a newer one is out."""
        return {
            "root": self.root,
            "generation": self.manifest.generation,
            "identity": self.manifest.identity,
            "split": self._split,
            "label": self.label,
            "transform": self.transform,
            "verify": self._verify,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        identity = state.pop("identity")
        self._open(**state)
        if self.manifest.identity != identity:
            raise DamagedError(f"{self.root}: generation {self.manifest.generation} is not the one that was pickled")

    def _row(self, index: int) -> int:
        """The pack's row of a sample; negative indices count from the end."""
        try:
            return self._rows[operator.index(index)]
        except IndexError:
            raise IndexError(f"index {index} is out of range for {len(self)} samples in {self.root}") from None

    def _read(self, rows: list[int]) -> list[Sample]:
        """The rows in memory of their own: one piece of it for all, or where they are native, for each."""
        image, label = self.manifest.fields
        if image.size is None:
            return [self._read_native(row) for row in rows]
        groups = self._by_shard(rows)
        for shard, _, _ in groups:  # no memory is taken for rows that their files cannot hold
            self._pack.shard(shard)
        images = np.empty((len(rows), *image.row_shape(*image.size)), image.dtype)
        labels = np.empty((len(rows), *label.row_shape(*image.size)), label.dtype)
        for shard, slots, places in groups:
            opened = self._pack.shard(shard)
            opened.read(IMAGE, places, images, slots)
            opened.read(LABEL, places, labels, slots)
        return list(zip(torch.from_numpy(images), torch.from_numpy(self._form(labels)), strict=True))

    def _read_native(self, row: int) -> NativeSample:
        shard, place = self._pack.table.locate(row)
        image, label = (self._pack.shard(shard).row(field, place) for field in self.manifest.fields)
        return NativeSample(torch.from_numpy(image), torch.from_numpy(self._form(label)))

    def _by_shard(self, rows: list[int]) -> list[tuple[int, list[int], list[int]]]:
        """The rows grouped by shard: (shard, places in the batch, places in the shard)."""
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for slot, row in enumerate(rows):
            shard, place = self._pack.table.locate(row)
            slots, places = groups.setdefault(shard, ([], []))
            slots.append(slot)
            places.append(place)
        return [(shard, slots, places) for shard, (slots, places) in groups.items()]

    def _form(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Stored labels in the form that was asked for."""
        stored = self.manifest.field(LABEL).encoding
        if self.label == stored:
            return labels
        if self.label == "onehot":
            return expand(labels, len(self.classes))
        return collapse(labels, self.classes.index_dtype)

    def _deliver(self, sample: Sample) -> Any:
        return sample if self.transform is None else self.transform(*sample)


class ArrowSegDataset(SegDataset):
    """A data set packed with `--format arrow`."""

    storage = "arrow"


class Hdf5SegDataset(SegDataset):
    """A data set packed with `--format hdf5`."""

    storage = "hdf5"


class LmdbSegDataset(SegDataset):
    """A data set packed with `--format lmdb`."""

    storage = "lmdb"


class NpySegDataset(SegDataset):
    """A data set packed with `--format npy`."""

    storage = "npy"


DATASETS: dict[str, type[SegDataset]] = {
    "arrow": ArrowSegDataset,
    "hdf5": Hdf5SegDataset,
    "lmdb": LmdbSegDataset,
    "npy": NpySegDataset,
}


def open_dataset(
    root: str | os.PathLike[str],
    split: str | None = None,
    label: LabelForm | None = None,
    transform: Transform | None = None,
    verify: Verify | None = None,
) -> SegDataset:
    """The data set packed at `root`, whatever its format.

    `split`: its name, or "all" for every row; may be left out where there is only one. `label`: "onehot" (C,H,W) or
    "index" (H,W), by default as stored. `transform(image, label)`: applied to each sample; its result is delivered.
    `verify`: "digest" holds the files of each shard against their SHA-256 before it is first opened.
    """
    return DATASETS[Manifest.load(Path(root)).storage](root, split, label, transform, verify)


def _rows(pack: Pack, split: str | None) -> range:
    """The pack's rows that belong to a split."""
    splits = pack.splits()
    names = [known.name for known, _, _ in splits]
    if split == ALL or (split is None and len(splits) == 1):
        return range(pack.manifest.rows)
    for known, _, rows in splits:
        if known.name == split:
            return rows
    found = f"there is no split {split!r}" if split else "has several splits, so say which"
    raise RequestError(f"{pack.root}: {found}: split= one of {', '.join(map(repr, [*names, ALL]))}")


def _label_form(manifest: Manifest, label: LabelForm | None) -> LabelForm:
    stored = manifest.field(LABEL).encoding
    form = stored if label is None else label
    if form == "onehot":
        return "onehot"
    if form == "index":
        return "index"
    raise RequestError(f'label={label!r} is neither "onehot" nor "index"')
