"""`SegDataset`: a packed data set as a PyTorch data set; one subclass per format, chosen by `open_dataset`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch.utils.data import Dataset

from readers.batch_memory import Lease, Slots
from readers.collate import NativeSample, Sample, Together
from readers.contract.classes import ClassTable
from readers.contract.errors import DamagedError, RequestError
from readers.contract.fields import LABEL, Field
from readers.contract.manifest import ALL, Manifest
from readers.contract.pixel_sums import Pixels
from readers.crop import CenterCrop, Cut, Size
from readers.loader import Ahead, Batches, Loader, Output
from readers.order import Order, Shuffle, Window
from readers.pack import Pack
from readers.row_reader import Arrays, Reader
from readers.staged_copies import open_pack, reopen
from readers.statistics import Weighting, class_weights, deviation, mean

LabelForm = Literal["onehot", "index"]
Verify = Literal["digest"]
BLOCK_BYTES = 8 << 20
"""With `shuffle="window"`, about so many bytes are read from one place of the disk."""

IDLE = 4
"""So many pieces of memory of samples that were let go of are kept for the next ones."""

Transform = Callable[[torch.Tensor, torch.Tensor], Any]


@dataclass(frozen=True)
class _Asked:
    """Which pack was asked for, and how it is opened."""

    root: Path
    verify: Verify | None
    staged: bool

    def __post_init__(self) -> None:
        if self.verify not in (None, "digest"):
            raise RequestError(f'verify={self.verify!r} is neither None nor "digest"')

    @property
    def digests(self) -> bool:
        return self.verify == "digest"

    def pack(self, generation: int | None = None) -> Pack:
        """There, or in a copy."""
        return open_pack(self.root, generation, self.digests, self.staged)


class SegDataset(Dataset[Any]):
    """Rows of one split as (image, label) tensors of their own memory.

    `label` is "onehot" (C,H,W) or "index" (H,W), by default as stored; `transform(image, label)` is applied to each
    sample and what it returns is delivered. Rows that were packed with `--size native` have each a size of their own.
    `root` is where the rows are read: OUT, or a copy of the same generation that `packer stage` has brought near.
    """

    storage: ClassVar[str | None] = None

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None = None,
        label: LabelForm | None = None,
        transform: Transform | None = None,
        verify: Verify | None = None,
        staged: bool = True,
    ) -> None:
        asked = _Asked(Path(root).absolute(), verify, staged)
        self._show(asked, asked.pack(), split, label, transform)

    def _show(
        self, asked: _Asked, pack: Pack, split: str | None, label: LabelForm | None, transform: Transform | None
    ) -> None:
        self._asked = asked
        self._pack = pack
        self._split = split
        self._rows = _rows(pack, split)
        self.root = pack.root
        self.transform = transform
        self.label = _label_form(self._pack.manifest, label)
        self._reader = Reader(self._pack, self.label)
        self._slots = Slots(IDLE)
        if self.storage not in (None, pack.manifest.storage):
            right = DATASETS[pack.manifest.storage].__name__
            raise RequestError(
                f"{asked.root}: is stored as {pack.manifest.storage}, not {self.storage}; use {right} or open_dataset"
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
    def image_field(self) -> Field:
        """What an image is."""
        return self._reader.image

    @property
    def label_field(self) -> Field:
        """What a label is, in the form in which it is delivered."""
        return self._reader.label

    @property
    def split(self) -> str:
        """The split's name; "all" for every row."""
        return self._split or self._pack.manifest.splits[0].name

    @property
    def pixels(self) -> Pixels:
        """What all pixels of the split together are."""
        return _pixels(self.manifest, self.split)

    @property
    def mean(self) -> tuple[float, ...]:
        """Of each channel of the split's images, as numbers from 0 to 1; exact."""
        return mean(self.pixels)

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel, as numbers from 0 to 1; exact."""
        return deviation(self.pixels)

    def class_weights(self, weighting: Weighting = "median") -> tuple[float, ...]:
        """For the split's classes: "median", "inverse" or "enet"; see `readers.statistics`."""
        return class_weights(self.pixels, weighting)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int | slice) -> Any:
        """One sample, or the list of samples of a slice."""
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        sample = self._sample(self._row(index))
        return sample if self.transform is None else self.transform(*sample)

    def __iter__(self) -> Iterator[Any]:
        """Every sample in order."""
        return (self[index] for index in range(len(self)))

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Many samples at once; the stock DataLoader asks this way."""
        samples = self._read([self._row(index) for index in indices])
        return samples if self.transform is None else [self.transform(*sample) for sample in samples]

    def loader(
        self,
        batch_size: int,
        *,
        shuffle: Shuffle = False,
        seed: int = 0,
        crop: Size | CenterCrop | None = None,
        flip: bool = False,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        pad: bool | None = None,
        labels: LabelForm | None = None,
        output: Output = "torch",
        pin_memory: bool | None = None,
        threads: int | Literal["auto"] = "auto",
        ahead: int = 3,
        drop_behind: bool = False,
    ) -> Loader:
        """Whole batches (images, labels), gathered by threads `ahead` of use; the fast way to read.

        `shuffle`, `seed`, `rank`, `world_size`, `drop_last`, `pad`: see `Order`. `crop` and `flip`: a window of each
        picture, and half of them turned left to right, as (seed, epoch, row) decide. `labels`: the form they come in,
        by default that of the data set. `output`: "torch" or "numpy". `pin_memory`: by default where there is CUDA.
        `drop_behind`: rows leave memory once they were read, for data that is read once.
        """
        if self.transform is not None:
            raise RequestError(
                "loader() delivers whole batches, and this data set has a transform for samples: open it without, "
                "crop with crop=, and transform the batches (on the GPU); or use a DataLoader"
            )
        reader = Reader(self._pack, _label_form(self.manifest, labels or self.label))
        if shuffle == "window" and len(self):
            shuffle = Window(max(1, BLOCK_BYTES // reader.row_bytes(self._rows[0])))
        order = Order(
            len(self), shuffle=shuffle, seed=seed, rank=rank, world_size=world_size, drop_last=drop_last, pad=pad
        )
        batches = Batches(
            reader, self._rows.start, batch_size, drop_last, Cut.of(crop, flip), moments=(self.mean, self.std)
        )
        return Loader(batches, order, Ahead(threads, ahead, drop_behind), output, pin_memory)

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
            "asked": self._asked,
            "copy": self.root,
            "generation": self.manifest.generation,
            "identity": self.manifest.identity,
            "split": self._split,
            "label": self.label,
            "transform": self.transform,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        asked: _Asked = state["asked"]
        generation, identity = state["generation"], state["identity"]
        near = state["copy"] != asked.root
        pack = (near and reopen(state["copy"], generation, identity, asked.digests)) or asked.pack(generation)
        if pack.manifest.identity != identity:
            raise DamagedError(f"{asked.root}: generation {generation} is not the one that was pickled")
        self._show(asked, pack, state["split"], state["label"], state["transform"])

    def _row(self, index: int) -> int:
        """The pack's row of a sample; negative indices count from the end."""
        try:
            return self._rows[operator.index(index)]
        except IndexError:
            raise IndexError(f"index {index} is out of range for {len(self)} samples in {self.root}") from None

    def _read(self, rows: list[int]) -> Sequence[Sample | NativeSample]:
        """The rows in memory of their own: one piece of it for all, or where they are native, for each."""
        if self._reader.native:
            return [self._sample(row) for row in rows]
        return Together(*map(torch.from_numpy, self._reader.read(rows, self._slots.lease))) if rows else []

    def _sample(self, row: int) -> Sample | NativeSample:
        images, labels = self._reader.read([row], self._slots.lease)
        kind = NativeSample if self._reader.native else Sample
        return kind(torch.from_numpy(images[0]), torch.from_numpy(labels[0]))

    def gather(self, indices: Sequence[int], lease: Lease) -> Arrays:
        """Samples as one array of images and one of labels, in memory that `lease(shape, dtype)` gives."""
        return self._reader.read([self._row(index) for index in indices], lease)


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
    staged: bool = True,
) -> SegDataset:
    """The data set packed at `root`, whatever its format.

    `split`: its name, or "all" for every row; may be left out where there is only one. `label`: "onehot" (C,H,W) or
    "index" (H,W), by default as stored. `transform(image, label)`: applied to each sample; its result is delivered.
    `verify`: "digest" holds the files of each shard against their SHA-256 before it is first opened.
    `staged`: whether to look for a copy of the same generation that `packer stage` has brought near, and read that.
    """
    asked = _Asked(Path(root).absolute(), verify, staged)
    pack = asked.pack()
    dataset = object.__new__(DATASETS[pack.manifest.storage])  # its __init__ would open the pack once more
    dataset._show(asked, pack, split, label, transform)
    return dataset


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


def _pixels(manifest: Manifest, split: str) -> Pixels:
    return next((one.pixels for one in manifest.splits if one.name == split), manifest.pixels)


def _label_form(manifest: Manifest, label: LabelForm | None) -> LabelForm:
    stored = manifest.field(LABEL).encoding
    form = stored if label is None else label
    if form == "onehot":
        return "onehot"
    if form == "index":
        return "index"
    raise RequestError(f'label={label!r} is neither "onehot" nor "index"')
