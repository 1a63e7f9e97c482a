"""Statistics of a split, computed from the sums in the manifest: exact, and no pixel is read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, Field
from readers.contract.folds import TRAIN, splits_of_fold
from readers.contract.kinds import PICTURE
from readers.contract.manifest import Manifest
from readers.contract.statistics import (
    UNIT_BITS,
    ClassStatistics,
    Counts,
    FieldStatistics,
    PictureStatistics,
    Statistics,
    ValueStatistics,
)

Weighting = Literal["inverse", "median", "enet"]
MeanStd = tuple[Sequence[float], Sequence[float]]
"""Mean and standard deviation of each channel, of pixels from 0 to 1."""
WEIGHTINGS: tuple[Weighting, ...] = ("inverse", "median", "enet")


def training_statistics(manifest: Manifest, fold: int | None = None) -> Statistics | None:
    """Return the statistics of the rows to train on, which images of every split are normalised by; None if it is not
    clear which these are.

    They are the training part of the fold, or else the only split, or else the one named "train", or else the only one
    whose name begins with "train".
    """
    names = [split.name for split in manifest.splits]
    if fold is not None:
        return manifest.statistics_of(*splits_of_fold(names, fold, TRAIN))
    if len(manifest.splits) == 1:
        return manifest.splits[0].statistics
    named = [split for split in manifest.splits if split.name.lower().startswith("train")]
    exact = [split for split in named if split.name.lower() == "train"]
    chosen = exact or named
    return chosen[0].statistics if len(chosen) == 1 else None


def picture_of(fields: Sequence[Field]) -> Field | None:
    """Return the field `image`, or else the first picture."""
    pictures = {field.name: field for field in fields if field.kind == PICTURE}
    return pictures.get(IMAGE) or next(iter(pictures.values()), None)


def mean_and_deviation(fields: Sequence[Field], statistics: Statistics) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of each band of the picture; nothing for a pack without pictures."""
    picture = picture_of(fields)
    if picture is None:
        return (), ()
    return mean(picture, statistics[picture.name]), deviation(picture, statistics[picture.name])


def training_mean_std(manifest: Manifest, fold: int | None, fields: Sequence[Field]) -> MeanStd | None:
    """Return mean and deviation of the training rows' images; None if it is not clear which rows these are."""
    training = training_statistics(manifest, fold)
    return None if training is None else mean_and_deviation(fields, training)


def mean_std_of(normalize: MeanStd | bool | None, training: MeanStd | None) -> MeanStd | None:
    """Return the mean and deviation that the option `normalize` means; `training` belongs to the training split."""
    if normalize is False or normalize is None:
        return None
    if normalize is not True:
        try:
            means, deviations = (tuple(map(float, numbers)) for numbers in normalize)
        except (TypeError, ValueError):
            expected = "expected True or (means, deviations), a number for each channel"
            raise RequestError(f"normalize={normalize!r}: {expected}") from None
        return means, deviations
    if training is None:
        raise RequestError(
            'normalize=True: the pack has no split "train", nor just one whose name begins with "train"; '
            "say which split to normalise by, such as normalize=(train.mean, train.std)"
        )
    return training


def mean(field: Field, statistics: FieldStatistics) -> tuple[float, ...]:
    """Return the mean of each band, of numbers from 0 to 1 if the field has a range, else of numbers as stored."""
    return tuple(float(band.mean) for band in moments(field, statistics))


def deviation(field: Field, statistics: FieldStatistics) -> tuple[float, ...]:
    """Return the standard deviation of each band, of the same numbers as `mean`."""
    return tuple(band.deviation for band in moments(field, statistics))


class Moments(NamedTuple):
    """The mean of a band's numbers and the mean of their squares; exact. Both of parts add up by the parts' shares."""

    mean: Fraction
    square: Fraction

    @property
    def deviation(self) -> float:
        return math.sqrt(self.square - self.mean * self.mean)


def moments(field: Field, statistics: FieldStatistics) -> tuple[Moments, ...]:
    """Return the moments of each band, of numbers from 0 to 1 if the field has a range, else of numbers as stored."""
    low, high = _range(field)
    unit, scale, bands = _unit(field), high - low, []
    for total, square, count in zip(*_sums(field, statistics), strict=True):
        plain, squared = Fraction(total, max(1, count)) * unit, Fraction(square, max(1, count)) * unit * unit
        mean_square = (squared - 2 * low * plain + low * low) / (scale * scale)
        bands.append(Moments((plain - low) / scale, mean_square))
    return tuple(bands)


class _Sums(NamedTuple):
    """For each band the sum of its numbers, the sum of their squares, and how many they are."""

    sums: Counts
    squares: Counts
    counted: Counts


def _sums(field: Field, statistics: FieldStatistics) -> _Sums:
    """Return the sums of each band, in a time series over all dates."""
    if not isinstance(statistics, (PictureStatistics, ValueStatistics)):
        raise RequestError(f"the field {field.name!r} is of the kind {field.kind}, which has no mean")
    bands = len(statistics.sums) // field.times
    counts = (statistics.sums, statistics.squares, statistics.counted)
    return _Sums(*(tuple(sum(numbers[band::bands]) for band in range(bands)) for numbers in counts))


def _range(field: Field) -> tuple[Fraction, Fraction]:
    low, high = field.range or (0, 1)
    return Fraction(low), Fraction(high)


def _unit(field: Field) -> Fraction:
    return Fraction(1, 1 << UNIT_BITS.get(field.dtype, 0))


def class_weights(counts: ClassStatistics, weighting: Weighting) -> tuple[float, ...]:
    """Return the weight of a pixel of each class in a loss, so that rare classes are learnt as well; 0 for a class
    that does not occur.

    "inverse": one over the class's share of the labelled pixels and the number of classes that occur, so that all these
    classes count alike. "median": the median of all classes' frequencies over the class's own, each the share of the
    class in the pictures that have it (Eigen and Fergus). "enet": 1 / ln(1.02 + share) (Paszke et al.).
    """
    labelled = max(1, sum(counts.classes))
    shares = [count / labelled for count in counts.classes]
    if weighting == "inverse":
        present = sum(count > 0 for count in counts.classes)
        return tuple(1 / (present * share) if share else 0.0 for share in shares)
    if weighting == "enet":
        return tuple(1 / math.log(1.02 + share) if share else 0.0 for share in shares)
    if weighting == "median":
        frequencies = [count / area if area else 0.0 for count, area in zip(counts.classes, counts.areas, strict=True)]
        middle = statistics.median([frequency for frequency in frequencies if frequency] or [0.0])
        return tuple(middle / frequency if frequency else 0.0 for frequency in frequencies)
    raise RequestError(f"class weights {weighting!r}: expected one of {', '.join(map(repr, WEIGHTINGS))}")
