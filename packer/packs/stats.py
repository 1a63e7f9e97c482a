"""Statistics of a pack: sizes, and of each field what was counted when it was built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from math import prod
from os import PathLike

from packer.errors import UsageError
from packer.packs.stored import seen
from readers.contract.fields import Field
from readers.contract.kinds import CLASSES, KINDS
from readers.contract.manifest import Split
from readers.contract.statistics import (
    ClassStatistics,
    FieldStatistics,
    IdStatistics,
    MaskedStatistics,
    ValueStatistics,
)
from readers.contract.tiles import Size
from readers.pack import Pack
from readers.percentiles import label_of
from readers.percentiles import percentiles as percentiles_of
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
    percentiles: dict[str, tuple[float, ...]] = dataclass_field(default_factory=dict)
    """For each rank that was asked for a number for each band, as of the mean."""


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


def pack_stats(
    out: str | PathLike[str], percentiles: Sequence[float] = (), foreground: bool = False
) -> list[SplitStats]:
    """The statistics of each split with rows. They are exact, and no image is read for them.

    For `percentiles`, numbers from 0 to 100, all rows are read. `foreground`: only pixels that are in a class besides
    the first one count in them.

    If rows have different sizes, the sizes are read, so at a URL such packs are refused with a UsageError.
    """
    with seen(out, holes=()) as (root, store):
        pack = Pack.open(root)
        if is_url(store.url) and pack.manifest.fields[0].size is None:
            raise UsageError(
                f"{out}: the sizes of rows are in the shards; first make a copy: packer stage {out} FOLDER"
            )
        if percentiles and is_url(store.url):
            raise UsageError(f"{out}: percentiles need all rows; first make a copy: packer stage {out} FOLDER")
        stats = stats_of(pack)
        return [_with_percentiles(pack, split, percentiles, foreground) for split in stats] if percentiles else stats


def stats_of(pack: Pack) -> list[SplitStats]:
    """Return the statistics of each split with rows."""
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
    label, picture = label_of(manifest.fields), picture_of(manifest.fields)
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


def _with_percentiles(pack: Pack, stats: SplitStats, ranks: Sequence[float], foreground: bool) -> SplitStats:
    """Return the statistics of a split with percentiles of its pictures and measured values."""
    pack.select([field.name for field in pack.manifest.fields])
    label = label_of(pack.manifest.fields) if foreground else None
    if foreground and label is None:
        raise UsageError(f"{pack.name}: --foreground needs a field with classes; leave it out")
    fields = []
    for field in stats.fields:
        numbers: dict[str, tuple[float, ...]] = {}
        if field.mean:
            stored = pack.manifest.field(field.name)
            of_ranks = percentiles_of(pack, stored, pack.rows_of(stats.split), ranks, label)
            numbers = {f"{rank:g}": bands for rank, bands in zip(ranks, of_ranks, strict=True)}
        fields.append(replace(field, percentiles=numbers))
    return replace(stats, fields=tuple(fields))


def _sizes(pack: Pack, shard: int) -> Counter[Size]:
    """The number of rows of each size in a shard."""
    fixed, rows = pack.manifest.fields[0].size, pack.table.rows(shard)
    if fixed is not None:
        return Counter({fixed: rows})
    return Counter(map(pack.shard(shard).size, range(rows))) if rows else Counter()


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
