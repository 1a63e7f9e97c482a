"""Choose the rows of a data set: a split, or a part of a fold, and of it the rows with or without a label."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate

from readers.contract.errors import RequestError
from readers.contract.fields import LABEL
from readers.contract.folds import TRAIN, VAL, known_fold, splits_of_fold
from readers.contract.manifest import ALL
from readers.pack import Pack
from readers.row_ranges import RowRanges


def choose_splits(pack: Pack, split: str | None, fold: int | None) -> tuple[str, ...]:
    """Return the names of the splits to read: all, one, or the training part of a fold; None means the only
    split."""
    names = tuple(entry.name for entry in pack.manifest.splits)
    if fold is not None:
        known_fold(names, fold)
        if split is None:
            raise RequestError(f'{pack.name}: fold={fold}: which part of it? split="{TRAIN}" or split="{VAL}"')
        if split in (TRAIN, VAL):
            return splits_of_fold(names, fold, split)
    pack.rows_of(split)  # raises for a name that is not there
    return names if split in (None, ALL) else (split,)


def choose_rows(pack: Pack, splits: Collection[str], labelled: bool | None) -> RowRanges:
    """Return the rows of these splits in the order of the pack, all or only those with or without a label.

    Of some splits of many the rows with a label come first, as within each split.
    """
    ranges = [rows for entry, _, rows in pack.splits() if entry.name in splits]
    if labelled is None and len(ranges) in (1, len(pack.manifest.splits)):
        return RowRanges(ranges)
    parts = {
        has_label: [part for rows in ranges for part in parts_with(pack, rows, has_label)]
        for has_label in (True, False)
    }
    if labelled is None:
        return RowRanges([*parts[True], *parts[False]])
    chosen = RowRanges(parts[labelled])
    if not chosen:
        what = "has a label" if labelled else "lacks a label"
        raise RequestError(f"{pack.name}: labelled={labelled}, but no row {what}")
    return chosen


def parts_with(pack: Pack, rows: range, labelled: bool) -> list[range]:
    """Return the parts of some splits that have a label, or that lack it."""
    parts = [part for split in pack.manifest.splits for part in split.parts]
    ends = list(accumulate((part.rows for part in parts), initial=0))
    return [
        range(start, end)
        for part, start, end in zip(parts, ends, ends[1:], strict=False)
        if start < end and rows.start <= start and end <= rows.stop and (LABEL in part.fields) == labelled
    ]
