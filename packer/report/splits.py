"""The classes of the splits of a pack, side by side: classes that are swapped in one of them stand out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from packer.packs.stats import SplitStats
from packer.report.charts import MOST_BARS, share_text

MOST_SPLITS = 6


class Compared(NamedTuple):
    """The names of splits, and for each class its name, its share in each split, and how far the shares are apart."""

    splits: Sequence[str]
    lines: Sequence[tuple[str, Sequence[str], str]]


def compared_splits(splits: Sequence[SplitStats]) -> list[str]:
    """Return the names of the splits that are compared: those with the most rows, in the order of the pack."""
    largest = sorted(splits, key=lambda split: -split.rows)[:MOST_SPLITS]
    return [split.split for split in splits if split in largest]


def compared(splits: Sequence[SplitStats]) -> Compared | None:
    """Return the classes whose shares differ most first; None for one split, or without classes."""
    names = compared_splits(splits)
    shown = [split for split in splits if split.split in names and split.classes]
    if len(shown) < 2:
        return None
    lines = []
    for classes in zip(*(split.classes for split in shown), strict=True):
        shares = [class_stats.share for class_stats in classes]
        if max(shares) > 0:
            apart = max(shares) / min(shares) if min(shares) else math.inf
            lines.append((apart, max(shares), classes[0].name, [share_text(share) for share in shares]))
    lines.sort(key=lambda line: (-line[0], -line[1]))
    texts = [(name, shares, "not in all" if apart == math.inf else f"{apart:.3g}") for apart, _, name, shares in lines]
    return Compared([split.split for split in shown], texts[:MOST_BARS])
