"""`MixedPacks`: several packs as one set of rows for a loader, in a stated ratio, with one list of classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import torch

from readers.augmentation import Augmentation
from readers.batch_memory import BatchMemory
from readers.batches import ReadAhead
from readers.class_change import ClassChange, ClassNames
from readers.colour import Colour
from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import Sides
from readers.contract.statistics import Statistics
from readers.crop import CenterCrop, Flip
from readers.dataset import SegDataset
from readers.delivered import LabelForm
from readers.epoch import Window
from readers.loader import Loader, Output
from readers.order import Shuffle
from readers.pack_batches import PackBatches
from readers.pack_order import PackOrder
from readers.packs_fit import (
    MOST_PARTS,
    changes_of,
    common_classes,
    ending,
    field_problems,
    one_of,
    share_problems,
    unfit,
)
from readers.partner_batches import PartnerBatches
from readers.row_reader import RowReader
from readers.statistics import MeanStd, Moments, moments, picture_of, training_statistics
from readers.training_receipt import mixed_receipt, options_facts

Share: TypeAlias = float | Fraction
Packs: TypeAlias = Sequence[tuple[SegDataset, Share]] | Mapping[str, tuple[SegDataset, Share]]
"""Each data set with its share of the rows; a mapping names them, else the name is the last part of the path."""


def mix_packs(
    packs: Packs,
    *,
    classes: str | ClassTable | Sequence[str] | None = None,
    mapping: Mapping[str, ClassNames] | None = None,
    end: str | int = 0,
) -> MixedPacks:
    """Return several data sets as one, for `loader`: `mix_packs([(city, 0.5), (own, 0.5)])`.

    The numbers are the shares of the rows, and need not add up to 1. `classes`: the common list, as the name of a pack,
    a table or names; by default the classes of the first pack. Classes go by name. `mapping={"own": {"lorry": "truck",
    "sky": None}}` names the class in the common list for others, None ignores their pixels. `end`: the name or number
    of the pack whose rows end an epoch; the others continue from epoch to epoch.
    """
    shares, datasets = _named(packs)
    problems = [problem for name, dataset in datasets.items() for problem in unfit(name, dataset)]
    problems += share_problems(shares)
    if not problems:
        problems += field_problems(datasets)
    common, wrong = common_classes(classes, datasets)
    changes, other = changes_of(datasets, common, mapping or {})
    last = ending(end, tuple(datasets))
    problems += [*wrong, *other, *([] if last is not None else [f"end={end!r}: {one_of(datasets)}"])]
    if problems or last is None:
        raise RequestError("\n".join(["these packs cannot be mixed:", *(f"  {problem}" for problem in problems)]))
    return MixedPacks(datasets, _weights(shares), common, changes, last)


@dataclass(frozen=True, repr=False)
class MixedPacks:
    """Several packs in a stated ratio, which `mix_packs` returns: `loader`, `len`, `classes`, `mean`, `std`."""

    packs: Mapping[str, SegDataset]
    weights: Mapping[str, int]
    """The share of each pack, in whole numbers."""
    classes: ClassTable
    """The common classes."""
    changes: Mapping[str, ClassChange | None]
    end: str
    """The pack whose rows end an epoch."""

    def __len__(self) -> int:
        """Return the number of rows of all packs together."""
        return sum(map(len, self.packs.values()))

    def __repr__(self) -> str:
        total = sum(self.weights.values())
        width = max(map(len, self.packs))
        lines = [
            f"    {name:<{width}}  {100 * self.weights[name] / total:5.1f} %  {len(dataset):,} rows"
            + (", which end an epoch" if name == self.end else "")
            for name, dataset in self.packs.items()
        ]
        return "\n".join([f"MixedPacks of {len(self):,} rows, {self.classes!r}", *lines])

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean of each band of all images, weighted by the shares, of pixels from 0 to 1; exact."""
        return self._pooled({name: dataset.statistics for name, dataset in self.packs.items()})[0]

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each band, weighted by the shares; exact."""
        return self._pooled({name: dataset.statistics for name, dataset in self.packs.items()})[1]

    def loader(
        self,
        batch_size: int,
        *,
        shuffle: Shuffle = False,
        seed: int = 0,
        crop: Sides | CenterCrop | None = None,
        flip: Flip = False,
        turn: bool = False,
        colour: Colour | None = None,
        normalize: MeanStd | bool = False,
        dtype: torch.dtype | None = None,
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
        partners: int = 0,
    ) -> Loader:
        """Return a loader of batches with rows of all packs, pack by pack; with the options of a data set.

        Every batch has the whole number of rows below or above the share of a pack, and so have all batches of an
        epoch up to it, over all ranks. `partners=1`: the partner of a row is a row of its pack.
        """
        if isinstance(shuffle, Window) and shuffle.apart:
            raise RequestError(f"shuffle={shuffle!r}: the rows of a batch come from several packs; leave out apart=")
        readers = {name: dataset._batch_reader(self._form(dataset)) for name, dataset in self.packs.items()}
        self._check_sizes(readers, crop)
        shuffles = {
            name: dataset._near_shuffle(readers[name], alone=False) if shuffle == "window" else shuffle
            for name, dataset in self.packs.items()
        }
        options: dict[str, Any] = {"rank": rank, "world_size": world_size, "drop_last": drop_last, "pad": pad}
        rows = {name: len(dataset) for name, dataset in self.packs.items()}
        augmentation = Augmentation(crop, flip, turn, colour, normalize, dtype)
        packs = self._batches(batch_size, readers, augmentation, labels)
        sides = [range(first, first + many) for first, many in zip(packs.firsts, rows.values(), strict=True)]
        batches = PartnerBatches.of(packs, sides, partners)
        order = PackOrder(rows, self.weights, batch_size, end=self.end, shuffle=shuffles, seed=seed, **options)

        def facts() -> dict[str, Any]:
            loader = options_facts(**vars(augmentation), partners=partners or None, rest=order.end)
            return {**self.receipt(), "loader": loader}

        return Loader(batches, order, ReadAhead(threads, ahead, drop_behind), output, pin_memory, BatchMemory(), facts)

    def receipt(self) -> dict[str, Any]:
        """Return the receipt of each pack with its share, and the common classes."""
        changes = {
            name: change.names(self.packs[name].classes, self.classes)
            for name, change in self.changes.items()
            if change is not None
        }
        return mixed_receipt(self.packs, self.weights, end=self.end, classes=self.classes.names, class_changes=changes)

    def _form(self, dataset: SegDataset) -> LabelForm | None:
        """Return the form in which labels are read: as index, so that their numbers can be changed."""
        return None if dataset.label is None else "index"

    def _batches(
        self,
        size: int,
        readers: Mapping[str, RowReader],
        augmentation: Augmentation,
        labels: LabelForm | None,
    ) -> PackBatches:
        first = next(iter(self.packs.values()))
        form = labels or first.label or "index"
        if form not in ("index", "onehot"):
            raise RequestError(f'labels={labels!r} is neither "onehot" nor "index"')
        pooled, packs = self._training(), []
        for name, dataset in self.packs.items():
            batches = dataset._batches(size, readers[name], augmentation, mean_std=pooled)
            packs.append(replace(batches, training=dataset._mean_std))
        lengths = [len(dataset) for dataset in self.packs.values()]
        firsts = tuple(sum(lengths[:number]) for number in range(len(lengths)))
        changes = tuple(self.changes[name] for name in self.packs)
        return PackBatches(tuple(packs), firsts, changes, self.classes, form, size, pooled)

    def _training(self) -> MeanStd | None:
        """Return mean and deviation of the training splits of all packs; None if it is not clear which they are."""
        training = {name: training_statistics(data.manifest, data.fold) for name, data in self.packs.items()}
        clear = {name: statistics for name, statistics in training.items() if statistics is not None}
        return self._pooled(clear) if len(clear) == len(training) else None

    def _pooled(self, statistics: Mapping[str, Statistics]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and deviation of each band of the pictures, weighted by the shares of the packs."""
        total, bands = sum(self.weights.values()), []
        for name, dataset in self.packs.items():
            picture = picture_of(dataset.fields)
            bands.append(() if picture is None else moments(picture, statistics[name][picture.name]))
        shares = [Fraction(self.weights[name], total) for name in self.packs]
        pooled = [
            Moments(
                *(sum(s * part for s, part in zip(shares, parts, strict=True)) for parts in zip(*band, strict=True))
            )
            for band in zip(*bands, strict=True)
        ]
        return tuple(float(band.mean) for band in pooled), tuple(band.deviation for band in pooled)

    def _check_sizes(self, readers: Mapping[str, RowReader], crop: object) -> None:
        """Refuse packs whose rows have different sizes, if nothing is cropped."""
        sizes = {name: reader.size for name, reader in readers.items()}
        if crop is None and len(set(sizes.values())) > 1:
            named = ", ".join(f"{name} {_size_text(size)}" for name, size in sizes.items())
            raise RequestError(f"the packs have rows of different sizes ({named}): give loader() crop=(H, W)")


def _size_text(size: Sides | None) -> str:
    return "sizes of their own" if size is None else "x".join(map(str, size))


def _named(packs: Packs) -> tuple[dict[str, Share], dict[str, SegDataset]]:
    """Return the share and the data set of each pack, by a name that no other has."""
    expected = "mix_packs: expected data sets with their shares, such as [(city, 0.5), (own, 0.5)]"
    pairs = list(packs.items()) if isinstance(packs, Mapping) else [(None, pair) for pair in packs]
    shares: dict[str, Share] = {}
    datasets: dict[str, SegDataset] = {}
    for key, pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], SegDataset)):
            raise RequestError(f"{expected}, found {pair!r}")
        dataset, share = pair
        name, number = key or dataset._location.name, 2
        while name in datasets:
            name, number = f"{key or dataset._location.name}-{number}", number + 1
        shares[name], datasets[name] = share, dataset
    if not datasets:
        raise RequestError(f"{expected}, found none")
    return shares, datasets


def _weights(shares: Mapping[str, Share]) -> dict[str, int]:
    """Return the shares as the least whole numbers."""
    fractions = {name: Fraction(share).limit_denominator(MOST_PARTS) for name, share in shares.items()}
    whole = math.lcm(*(share.denominator for share in fractions.values()))
    weights = {name: int(share * whole) for name, share in fractions.items()}
    common = math.gcd(*weights.values())
    return {name: weight // common for name, weight in weights.items()}
