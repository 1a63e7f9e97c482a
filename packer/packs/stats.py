"""Statistics of a pack: sizes, and of each field what was counted when it was built."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from os import PathLike

from packer.errors import UsageError
from packer.packs.stored import seen
from readers.contract.fields import LABEL, Field
from readers.contract.kinds import CLASSES, KINDS
from readers.contract.manifest import Manifest, Split
from readers.contract.statistics import (
    ClassStatistics,
    FieldStatistics,
    IdStatistics,
    MaskedStatistics,
    ValueStatistics,
)
from readers.contract.tiles import Size
from readers.pack import Pack
from readers.statistics import WEIGHTINGS, class_weights, deviation, mean, picture_of
from readers.stores.open_store import is_url


@dataclass(frozen=True)
class ClassStats:
    """The statistics of one class in a split."""

    name: str
    pixels: int
    share: float
    """Part of the pixels that are in a class. If classes overlap: of all pixels."""
    rows: int
    """Rows with at least one pixel of the class."""
    weights: dict[str, float]
    """Weights for a loss, by the kind of weighting. Classes that overlap have none."""


@dataclass(frozen=True)
class FieldStats:
    """The statistics of one field in a split."""

    name: str
    kind: str
    rows: int
    """Rows that have the field."""
    pixels: int
    """Pixels of these rows."""
    empty: int
    """Pixels that are ignored or in no class, belong to no object, or have no measurement. A picture has none."""
    bands: tuple[str, ...]
    """The names of the bands of a picture, of a time series of its first date."""
    times: int
    """The dates of a time series. Mean, deviation and missing pixels are of all dates together. Others have 1."""
    mean: tuple[float, ...]
    """The mean of each band of a picture, or of the values. If the field has a range, numbers are from 0 to 1."""
    std: tuple[float, ...]
    missing: tuple[int, ...]
    """The pixels without data of each band of a picture that marks them. They are in neither mean nor deviation."""
    classes: tuple[ClassStats, ...]


@dataclass(frozen=True)
class SplitStats:
    """The statistics of one split. Mean and deviation belong to the picture, the classes to the label."""

    split: str
    rows: int
    pixels: int
    ignored: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sizes: dict[Size, int]
    """Rows by height and width, the most frequent first."""
    classes: tuple[ClassStats, ...]
    fields: tuple[FieldStats, ...]


def pack_stats(out: str | PathLike[str]) -> list[SplitStats]:
    """The statistics of each split with rows. They are exact, and no image is read for them.

    If rows have different sizes, the sizes are read, so at a URL such packs are refused with a UsageError.
    """
    with seen(out, holes=()) as (root, store):
        pack = Pack.open(root)
        if is_url(store.url) and pack.manifest.fields[0].size is None:
            raise UsageError(
                f"{out}: the sizes of rows are in the shards; first make a copy: packer stage {out} FOLDER"
            )
        return [_split_stats(pack, split, shards) for split, shards, _ in pack.splits() if split.rows]


def _split_stats(pack: Pack, split: Split, shards: range) -> SplitStats:
    manifest = pack.manifest
    sizes, pixels = Counter[Size](), Counter[str]()
    for shard in shards:
        shard_sizes = _sizes(pack, shard)
        sizes += shard_sizes
        area = sum(prod(size) * count for size, count in shard_sizes.items())
        pixels.update({field.name: area for field in pack.fields_of(shard)})
    fields = {field.name: _field_stats(field, split, pixels[field.name]) for field in manifest.fields}
    label, picture = _label_of(manifest), picture_of(manifest.fields)
    return SplitStats(
        split=split.name,
        rows=split.rows,
        pixels=fields[label.name].pixels if label else 0,
        ignored=fields[label.name].empty if label else 0,
        mean=fields[picture.name].mean if picture else (),
        std=fields[picture.name].std if picture else (),
        sizes=dict(sizes.most_common()),
        classes=fields[label.name].classes if label else (),
        fields=tuple(fields.values()),
    )


def _sizes(pack: Pack, shard: int) -> Counter[Size]:
    """The number of rows of each size in a shard."""
    fixed, rows = pack.manifest.fields[0].size, pack.table.rows(shard)
    if fixed is not None:
        return Counter({fixed: rows})
    return Counter(map(pack.shard(shard).size, range(rows))) if rows else Counter()


def _label_of(manifest: Manifest) -> Field | None:
    """The field `label`, or else the first one with classes."""
    tables = {field.name: field for field in manifest.fields if field.classes is not None}
    return tables.get(LABEL) or next(iter(tables.values()), None)


def _field_stats(field: Field, split: Split, pixels: int) -> FieldStats:
    statistics = split.statistics[field.name]
    has_mean = KINDS[field.kind].has_mean
    return FieldStats(
        name=field.name,
        kind=field.kind,
        rows=sum(part.rows for part in split.parts if field.name in part.fields),
        pixels=pixels,
        empty=_empty(statistics),
        bands=(field.bands or ())[: field.numbers // field.times],
        times=field.times,
        mean=mean(field, statistics) if has_mean else (),
        std=deviation(field, statistics) if has_mean else (),
        missing=_missing(field, statistics),
        classes=_class_stats(field, statistics, pixels) if isinstance(statistics, ClassStatistics) else (),
    )


def _missing(field: Field, statistics: FieldStatistics) -> tuple[int, ...]:
    """The pixels without data of each band, in a time series of all dates."""
    if not isinstance(statistics, MaskedStatistics):
        return ()
    bands = len(statistics.missing) // field.times
    return tuple(sum(statistics.missing[band::bands]) for band in range(bands))


def _empty(statistics: FieldStatistics) -> int:
    """The number of pixels that say nothing."""
    if isinstance(statistics, ClassStatistics):
        return statistics.ignored
    if isinstance(statistics, IdStatistics):
        return statistics.empty
    return statistics.invalid if isinstance(statistics, ValueStatistics) else 0


def _class_stats(field: Field, statistics: ClassStatistics, pixels: int) -> tuple[ClassStats, ...]:
    alone = field.kind == CLASSES
    weights = {weighting: class_weights(statistics, weighting) for weighting in WEIGHTINGS} if alone else {}
    labelled = max(1, sum(statistics.classes) if alone else pixels)
    names = () if field.classes is None else field.classes.names
    return tuple(
        ClassStats(
            name,
            statistics.classes[index],
            statistics.classes[index] / labelled,
            statistics.rows[index],
            {weighting: weights[weighting][index] for weighting in weights},
        )
        for index, name in enumerate(names)
    )
