"""`SegDataset`: the rows of a packed data set as a PyTorch data set."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch.utils.data import Dataset

from readers.augmentation import Augmentation
from readers.batch_memory import BatchMemory, Lease
from readers.batches import Batches, ReadAhead
from readers.choose_rows import choose_rows, choose_splits, parts_with
from readers.class_index import ClassIndex
from readers.collate import register_collate
from readers.colour import Colour
from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field, Sides
from readers.contract.folds import fold_numbers
from readers.contract.manifest import ALL, Manifest
from readers.contract.place import Place
from readers.contract.statistics import Statistics, class_counts
from readers.contract.tiles import tile_starts, window_key
from readers.crop import CenterCrop, CropAndFlip, Flip, RandomCrop
from readers.delivered import Forms, LabelForm, delivered, forms_of
from readers.epoch import Window
from readers.find_key import find_key
from readers.holding import Holding
from readers.loader import Facts, Loader, Output
from readers.location import CacheBytes, Location, Verify
from readers.mix import Mix, MixedOrder, Side
from readers.on_device import check_fields
from readers.order import Order, Shuffle
from readers.pack import Pack
from readers.partner_batches import PartnerBatches
from readers.percentiles import RANKS, label_of, percentiles
from readers.row_pictures import RowPictures, Style, as_image
from readers.row_ranges import joined
from readers.row_reader import Arrays, RowReader
from readers.row_sheet import Choice, row_sheet
from readers.row_weights import RowWeights, Weights
from readers.samples import SampleReader, Transform
from readers.sliding_windows import SlidingWindows
from readers.statistics import (
    MeanStd,
    Weighting,
    class_weights,
    deviation,
    mean,
    mean_and_deviation,
    picture_of,
    training_mean_std,
)
from readers.summary import html_of, text_of
from readers.training_receipt import dataset_receipt, options_facts
from readers.window_loader import window_loader
from readers.windows import whole_numbers

if TYPE_CHECKING:
    from PIL.Image import Image

BLOCK_BYTES = 8 << 20
"""With `shuffle="window"`, about this many bytes are read from one region of the disk."""

SHARDS_OF_A_WINDOW = 8
"""With `shuffle="window"` and a cache, rows are drawn from about this number of shards."""


@dataclass(frozen=True)
class View:
    """The part of a pack that is read: a split or a part of a fold, fields by name, the forms of some, the rows with or
    without labels; None means the default."""

    split: str | None
    fold: int | None
    fields: Sequence[str] | None
    forms: Mapping[str, str]
    labelled: bool | None


class SegDataset(Dataset[Any]):
    """The rows of a split, or of a part of a fold, as tensors in memory of their own: (image, label), or the `fields`
    in their order.

    `label` is "onehot" (C,H,W) or "index" (H,W), by default as stored; `form` is the form of any field. If there is a
    `transform`, a sample is what `transform(image, label)` returns. Rows that were packed with `--size native` have a
    size of their own each. The attribute `root` is the folder that is read: OUT, a copy of the same generation made by
    `packer stage`, or the folder of the pack in the `cache`.
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
        fields: Sequence[str] | None = None,
        labelled: bool | None = None,
        form: Forms | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: CacheBytes | None = None,
        generation: int | None = None,
        fold: int | None = None,
        offline: bool | None = None,
    ) -> None:
        location = Location.of(root, verify, staged, cache, cache_bytes, generation, offline)
        self._open(location, location.open(), View(split, fold, fields, forms_of(label, form), labelled), transform)

    def _open(self, location: Location, pack: Pack, view: View, transform: Transform | None) -> None:
        register_collate()
        self._location = location
        self._pack = pack
        self._view = view
        self._splits = choose_splits(pack, view.split, view.fold)
        self._rows = choose_rows(pack, self._splits, view.labelled)
        self.root = pack.root
        self.transform = transform
        self._stored = pack.select(view.fields)
        self._reader = self._reader_of({})
        self._mean_std = partial(_training_mean_std, pack, view.fold, self.fields)
        self._samples = SampleReader(self._reader, self._mean_std)
        self._memory = BatchMemory()
        if self.storage not in (None, pack.manifest.storage):
            stored = pack.manifest.storage
            right = f"{stored.capitalize()}SegDataset or open_dataset"
            raise RequestError(f"{location.root}: stored as {stored}, not {self.storage}; use {right}")

    def _reader_of(self, forms: Mapping[str, str]) -> RowReader:
        """Return a reader of the selected fields in these forms, by default in the forms of the view."""
        return RowReader(self._pack, delivered(self._stored, {**self._view.forms, **forms}))

    @property
    def manifest(self) -> Manifest:
        """The manifest of the generation that is read."""
        return self._pack.manifest

    @property
    def classes(self) -> ClassTable:
        """The classes in order; `classes.names`, `classes.ignore_index`."""
        return self._pack.manifest.classes

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a sample in order: the name, kind, dtype, shape and more of each delivered field."""
        return tuple(delivered.field for delivered in self._reader.fields)

    @property
    def label(self) -> str | None:
        """The form of labels, "onehot" or "index"; None if they are not read."""
        return next((field.form for field in self.fields if field.name == LABEL), None)

    @property
    def split(self) -> str:
        """The name of the split, or "train" or "val" of a fold; "all" for every row."""
        return self._view.split or self._pack.manifest.splits[0].name

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits that are read: all but one for the training part of a fold."""
        return self._splits

    @property
    def fold(self) -> int | None:
        """The fold that is trained and validated; None if none was named."""
        return self._view.fold

    @property
    def folds(self) -> tuple[int, ...]:
        """The numbers of all folds of the pack; none if it was built without."""
        return fold_numbers(split.name for split in self.manifest.splits)

    @property
    def labelled_rows(self) -> range:
        """The indices of the samples that have a label; they come before the others."""
        return self._part(labelled=True)

    @property
    def unlabelled_rows(self) -> range:
        """The indices of the samples that lack a label."""
        return self._part(labelled=False)

    def _part(self, labelled: bool) -> range:
        parts = [part for rows in self._rows.ranges for part in parts_with(self._pack, rows, labelled)]
        ranges = joined(map(self._rows.indices, parts))
        if len(ranges) > 1:
            name = self._pack.name
            raise RequestError(f"{name}: labelled={labelled}: these rows do not lie together; name one split")
        return ranges[0] if ranges else range(0)

    @property
    def statistics(self) -> Statistics:
        """Counts and sums over all pixels of the splits that are read, by the name of the field."""
        return self._pack.measured().statistics_of(*self.splits)

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean of each band of the split's images, of pixels from 0 to 1; exact."""
        return mean_and_deviation(self.manifest.fields, self.statistics)[0]

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each band, of pixels from 0 to 1; exact."""
        return mean_and_deviation(self.manifest.fields, self.statistics)[1]

    def mean_and_deviation(self, field: str) -> MeanStd:
        """Return mean and standard deviation of any picture, of each band, or of measured values; both exact.

        Numbers count from 0 to 1 if the field has a range, else they stay unchanged.
        """
        stored = self.manifest.field(field)
        return mean(stored, self.statistics[field]), deviation(stored, self.statistics[field])

    def percentiles(
        self, ranks: Sequence[float] = RANKS, field: str | None = None, foreground: bool = False
    ) -> tuple[tuple[float, ...], ...]:
        """Return a number for each band of each rank: `low, median, high = train.percentiles((0.5, 50, 99.5))`.

        `field` is the image, or another picture or measured values. Numbers count as for `mean`, and are exact: all
        rows are read, float32 twice. `foreground`: only pixels count that are in a class besides the first one.
        """
        names = {stored.name: stored for stored in self._stored}
        picture = picture_of(self._stored) if field is None else names.get(field)
        label = label_of(self._stored) if foreground else None
        if picture is None or (foreground and label is None):
            lacks = "a label" if picture is not None else "pictures" if field is None else f"the field {field!r}"
            raise RequestError(
                f"percentiles: {lacks} is needed, and the fields that are read are {', '.join(names)}; open the data "
                "set with fields=(…)"
            )
        return percentiles(self._pack, picture, self._rows, ranks, label)

    def class_weights(self, weighting: Weighting = "median") -> tuple[float, ...]:
        """Return a weight for each class, by "median", "inverse" or "enet"; see `readers.statistics`."""
        return class_weights(class_counts(self.statistics), weighting)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int | slice) -> Any:
        """Return one sample, or the list of samples of a slice."""
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        if self.transform is None:
            return self._samples.one(self._row(index))
        return self._samples.transformed(self.transform, [self._row(index)])[0]

    def __iter__(self) -> Iterator[Any]:
        """Yield every sample in order."""
        return (self[index] for index in range(len(self)))

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Return many samples at once; PyTorch's DataLoader calls this."""
        rows = [self._row(index) for index in indices]
        if self.transform is None:
            return self._samples.many(rows)
        return self._samples.transformed(self.transform, rows)

    def window(self, index: int, start: Sequence[int], size: Sides) -> Any:
        """Return a part of a sample, such as `window(0, (top, left), (512, 512))`. No transform is applied.

        In rows in tiles, only the tiles that it touches are read. Outside of the picture a field is what its
        padding is.
        """
        return self._samples.window(self._row(index), start, size)

    def windows(self, index: int, size: Sides, overlap: int = 0) -> Iterator[tuple[str, Any]]:
        """Yield all windows of this size of a sample, one in memory at a time, with keys that `stitch` takes.

        `stitch_stripes((key, model(image)) for key, (image, _) in dataset.windows(0, (512, 512), overlap=64))`
        """
        key, sides = self.key(index), self.size(index)
        window, shared = whole_numbers(size), whole_numbers([overlap])
        if len(window) != len(sides) or not shared or not 0 <= shared[0] < min(window):
            raise RequestError(
                f"windows(…, {size}, overlap={overlap}): expected a size such as {tuple(sides)}, the size of a row, "
                "and one whole number as the overlap, smaller than each side of the window"
            )
        starts = [tile_starts(side, length, overlap, shifted=False) for side, length in zip(sides, window, strict=True)]
        for start in itertools.product(*starts):
            yield window_key(key, start, sides), self.window(index, start, window)

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
        on: Literal["cpu", "device"] = "cpu",
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
        mix: Mix | None = None,
        mix_end: Side = "labelled",
        partners: int = 0,
        windows: Sides | SlidingWindows | None = None,
        weights: Weights | None = None,
    ) -> Loader:
        """Return a loader of whole batches of the data set's fields, read by threads `ahead` of use.

        `shuffle`, `seed`, `rank`, `world_size`, `drop_last`, `pad`: see `Order`. `crop`: a window of each picture or
        volume. `flip`: half of them left to right, with "all" along each axis. `turn`: by 0 to 3 quarters. `colour`,
        `normalize`, `dtype`: done to the image while it is read, see `Colour` and `Loader.to`. With `on="device"`
        PyTorch does all this, after `.to(device)` there. All random numbers follow from (seed, epoch, row). `labels`:
        "onehot" or "index", by default the data set's form. `output`: "torch" or "numpy". `pin_memory`: by default
        where there is CUDA. `drop_behind`: drop rows from the page cache once they are read, for data read only once.
        `mix={"labelled": 8, "unlabelled": 24}`: 8 rows with a label and then 24 without one in each batch; the epoch
        ends with the side `mix_end`; see `MixedOrder`. `weights`: rows with rare classes come more often; see `Order`.
        `partners=1`: a batch has its fields twice, of its rows and of a partner of each; see `PartnerBatches`.
        `windows`: batches (keys, images, labels) of all windows of this size of all rows, in order; each row is on one
        rank; see `SlidingWindows`.
        """
        reader = self._batch_reader(labels)
        reading = ReadAhead(threads, ahead, drop_behind)
        if on not in ("cpu", "device"):
            raise RequestError(f'on={on!r}: expected "cpu" or "device"')
        if windows is not None:
            chosen = SlidingWindows.of(windows, len(reader.sides))
            others: dict[str, Any] = {"shuffle": shuffle, "crop": crop, "flip": flip, "turn": turn, "colour": colour}
            others |= {"mix": mix, "partners": partners, "weights": weights, "on": on == "device"}
            others |= {"drop_last": drop_last, "pad": pad}
            augmentation = Augmentation(CenterCrop(chosen.size), normalize=normalize, dtype=dtype)
            cut = self._batches(batch_size, reader, augmentation)
            ranks, facts = (rank, world_size), self._facts(augmentation, windows=chosen)
            return window_loader(cut, chosen, others, *ranks, reading, output, pin_memory, self._memory, facts)
        if shuffle == "window" and len(self):
            shuffle = self._near_shuffle(reader, mix is None)
        options: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "rank": rank, "world_size": world_size}
        options |= {"drop_last": drop_last, "pad": pad}
        if mix is not None and weights is not None:
            raise RequestError(f"mix={mix!r} and weights={weights!r}: a batch has its rows from one of them")
        order: Order | MixedOrder
        if mix is None:
            order = Order(self, weights=weights, **options)
        else:
            order = MixedOrder(self, mix, mix_end=mix_end, **options)
        if isinstance(order, MixedOrder) and order.batch_size != batch_size:
            raise RequestError(f"mix={mix!r} makes batches of {order.batch_size} rows, but batch_size={batch_size}")
        if mix is None and mix_end != "labelled":
            raise RequestError(f"mix_end={mix_end!r} needs mix=")
        sides = [range(len(self))] if mix is None else [self.labelled_rows, self.unlabelled_rows]
        augmentation = Augmentation(crop, flip, turn, colour, normalize, dtype)
        own = self._batches(batch_size, reader, augmentation, on)
        own = replace(own, weights=order.weights if isinstance(order, Order) else None)
        batches = PartnerBatches.of(own, sides, partners)
        mixed = {"mix": order.mix, "mix_end": mix_end} if isinstance(order, MixedOrder) else {}
        facts = self._facts(augmentation, on=on, partners=partners or None, rest=order.end, **mixed)
        return Loader(batches, order, reading, output, pin_memory, self._memory, facts)

    def _facts(self, augmentation: Augmentation, **options: object) -> Facts:
        """Return what makes the receipt of a loader, when it is asked for."""
        return lambda: {**self.receipt(), "loader": options_facts(**vars(augmentation), **options)}

    def _batch_reader(self, labels: LabelForm | None = None) -> RowReader:
        """Return what reads the rows of batches, with labels in this form; refused if samples are transformed."""
        if self.transform is not None:
            raise RequestError(
                "loader() delivers whole batches, but this data set has a transform for samples: open it without "
                "transform, crop with crop=, and transform the batches (on the GPU); or use a DataLoader"
            )
        return self._reader_of({} if labels is None else {LABEL: labels})

    def _batches(
        self,
        size: int,
        reader: RowReader,
        augmentation: Augmentation,
        on: Literal["cpu", "device"] = "cpu",
        mean_std: MeanStd | None = None,
    ) -> Batches:
        """Return the reading of batches of `size` rows. `mean_std` belongs to the training rows, by default of this
        pack."""
        training = self._mean_std if mean_std is None else lambda: mean_std
        measured = training() if augmentation.normalize is True else None
        fields = [delivered.field for delivered in reader.fields]
        window, tone = (
            augmentation.cut(reader.sides),
            augmentation.tone(fields, measured),
        )
        if on == "device":
            check_fields(reader.fields, isinstance(augmentation.crop, RandomCrop) and augmentation.crop.scales)
        holding = self._holding(window)
        return Batches(reader, self._rows, size, window, tone, on == "device", training, holding=holding)

    def _holding(self, window: CropAndFlip | None) -> Holding | None:
        """Return the draw of windows by their classes, if the crop asks for it."""
        if window is None or not isinstance(window.crop, RandomCrop) or not window.follows_classes:
            return None
        index = ClassIndex.of(self._pack)
        if index.field.name not in [field.name for field in self._stored]:
            raise RequestError(f"crop={window.crop!r} needs the field {index.field.name!r}, which is not read")
        return Holding.of(index, self._rows, window, window.crop)

    def row_weights(self, weights: Weights) -> RowWeights:
        """Return the weights of the rows by their classes, for `Order`."""
        return RowWeights.of(ClassIndex.of(self._pack), self._rows, weights)

    def _near_shuffle(self, reader: RowReader, alone: bool) -> Window:
        """Return the window of `shuffle="window"`: regions of the disk, or whole shards where these are fetched."""
        if self._pack.cached is None or not alone:
            return Window(max(1, BLOCK_BYTES // reader.row_bytes(self._rows[0])))
        manifest = self._pack.manifest
        return Window(-(-manifest.rows // manifest.shards), SHARDS_OF_A_WINDOW, apart=True)

    def key(self, index: int) -> str:
        """Return the key of a sample: its name in the raw folder."""
        shard, row = self._pack.table.locate(self._row(index))
        return self._pack.shard(shard).key(row)

    def size(self, index: int) -> Sides:
        """Return height and width of a stored sample, of a volume depth, height and width."""
        shard, row = self._pack.table.locate(self._row(index))
        return self._pack.shard(shard).size(row)

    def place(self, index: int, whole: bool = False) -> Place | None:
        """Return where the pixels of a stored sample are in the world; None if its files do not say it.

        With `whole`, of a tile: where the picture is that it was cut from.
        """
        row = self._row(index)
        return self._pack.picture_place(row) if whole else self._pack.place(row)

    def index(self, key: str) -> int:
        """Return the index of the sample with this key; a KeyError names similar keys. It opens a few shards."""
        row = find_key(self._pack, key, *self._rows.ranges)
        return self._rows.indices(range(row, row + 1)).start

    @property
    def labelled(self) -> bool | None:
        """True if only rows with a label are read, False if only rows without one; None if all are."""
        whole = choose_rows(self._pack, self._splits, None)
        return None if len(self._rows) == len(whole) else self._view.labelled

    def receipt(self) -> dict[str, Any]:
        """Return the pack by its checksum, its generation, the rows and the versions, to keep next to a checkpoint.

        `loader(…).receipt()` has the options and the order, too. `readers.bridges` gives it to MLflow, Weights &
        Biases and DVC.
        """
        return dataset_receipt(self, self._location.root, self.transform)

    def show(
        self,
        index: int,
        field: str | None = None,
        opacity: float | None = None,
        classes: Sequence[str | int] | None = None,
        size: int | None = None,
        outlines: bool = False,
        window: tuple[float, float] | None = None,
        colour_blind: bool = False,
    ) -> Image:
        """Return a sample as an image of Pillow, which notebooks display: its picture with the label over it.

        `field`: another field to lay over the picture, or the picture to show. `opacity`: 0 is the picture, 1 the
        label; by default 0.5, and 1 for measured values. `classes`: only these, by name or number. `size`: the longest
        side in pixels, by default as stored. `outlines`: draw the edges of classes and objects. `window`: the numbers
        of a picture or of values that are drawn darkest and brightest.
        """
        style = Style(field, opacity, classes, outlines, window, colour_blind)
        return as_image(RowPictures(self._pack, style).one(self._row(index), size))

    def sheet(
        self,
        n: int = 24,
        seed: int = 0,
        rows: Sequence[int] | None = None,
        field: str | None = None,
        opacity: float | None = None,
        classes: Sequence[str | int] | None = None,
        outlines: bool = False,
        window: tuple[float, float] | None = None,
        colour_blind: bool = False,
    ) -> Image:
        """Return a contact sheet as an image of Pillow: `n` samples in a fair draw, or the samples `rows`, each with
        its label over its picture and its key, and the classes with their share. See `show` for the rest."""
        picked = None if rows is None else [self._row(index) for index in rows]
        style = Style(field, opacity, classes, outlines, window, colour_blind)
        choice = Choice(self._rows, [ALL] if self.split == ALL else self.splits, n, seed, picked)
        return row_sheet(RowPictures(self._pack, style), self._location.name, choice)

    def __repr__(self) -> str:
        return text_of(self, self._location.root)

    def _repr_html_(self) -> str:
        return html_of(self, self._location.root)

    def __getstate__(self) -> dict[str, Any]:
        """Return paths and the identity only; unpickling opens the same generation, also when there is a newer one."""
        return {
            "location": self._location,
            "folder": self.root,
            "generation": self.manifest.generation,
            "identity": self.manifest.identity,
            "view": self._view,
            "transform": self.transform,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        location: Location = state["location"]
        pack = location.open_again(state["folder"], state["generation"], state["identity"])
        self._open(location, pack, state["view"], state["transform"])

    def _row(self, index: int) -> int:
        """Return the row of the pack that is a sample; negative indices count from the end."""
        try:
            return self._rows[operator.index(index)]
        except IndexError:
            raise IndexError(f"index {index} is out of range for {len(self)} samples in {self.root}") from None

    def gather(self, indices: Sequence[int], lease: Lease) -> Arrays:
        """Return samples as one array for each field, in memory from `lease(shape, dtype)`."""
        return self._reader.read([self._row(index) for index in indices], lease)


def _training_mean_std(pack: Pack, fold: int | None, fields: Sequence[Field]) -> MeanStd | None:
    """Return mean and deviation of the training rows' images; None if it is not clear which rows these are."""
    return training_mean_std(pack.measured(), fold, fields)
