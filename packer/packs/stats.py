"""Statistics of a pack: mean, deviation, sizes, classes and their weights, counted when it was built."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from readers.contract.manifest import Manifest, Split
from readers.contract.statistics import class_counts
from readers.contract.tiles import Size
from readers.pack import Pack
from readers.statistics import WEIGHTINGS, class_weights, mean_and_deviation


@dataclass(frozen=True)
class ClassStats:
    """The statistics of one class in a split."""

    name: str
    pixels: int
    share: float
    """Part of the pixels that are in a class."""
    rows: int
    """Rows with at least one pixel of the class."""
    weights: dict[str, float]
    """Weights for a loss, by the kind of weighting."""


@dataclass(frozen=True)
class SplitStats:
    """The statistics of one split. Mean and deviation are of numbers from 0 to 1, by channel."""

    split: str
    rows: int
    pixels: int
    ignored: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sizes: dict[Size, int]
    """Rows by height and width, the most frequent first."""
    classes: tuple[ClassStats, ...]


def pack_stats(out: str | PathLike[str]) -> list[SplitStats]:
    """The statistics of each split with rows. They are exact, and no image is read for them."""
    pack = Pack.open(Path(out))
    return [_split_stats(pack.manifest, split, _sizes(pack, rows)) for split, _, rows in pack.splits() if split.rows]


def _sizes(pack: Pack, rows: range) -> Counter[Size]:
    """The number of rows of each size."""
    fixed = pack.manifest.fields[0].size
    if fixed is not None:
        return Counter({fixed: len(rows)})
    return Counter(pack.shard(shard).size(row) for shard, row in map(pack.table.locate, rows))


def _split_stats(manifest: Manifest, split: Split, sizes: Counter[Size]) -> SplitStats:
    counts = class_counts(split.statistics)
    labelled = max(1, sum(counts.classes))
    weights = {weighting: class_weights(counts, weighting) for weighting in WEIGHTINGS}
    mean, deviation = mean_and_deviation(manifest.fields, split.statistics)
    return SplitStats(
        split=split.name,
        rows=split.rows,
        pixels=counts.count,
        ignored=counts.ignored,
        mean=mean,
        std=deviation,
        sizes=dict(sizes.most_common()),
        classes=tuple(
            ClassStats(
                name,
                counts.classes[index],
                counts.classes[index] / labelled,
                counts.rows[index],
                {weighting: weights[weighting][index] for weighting in WEIGHTINGS},
            )
            for index, name in enumerate(manifest.classes.names)
        ),
    )
