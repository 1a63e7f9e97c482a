"""`RowSplits`: draw the splits of rows that are not files of a folder, by a hash of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from packer.errors import InputError
from packer.pairs.draw_splits import small_splits
from packer.pairs.split_by_hash import Shares
from packer.pairs.template import composed
from packer.recipe.row_ref import RowRef
from readers.contract.manifest import ALL


@dataclass
class RowSplits:
    """Draws the split of one row after the other, the same for all rows of a group, and counts them."""

    shares: Shares
    group_of: Callable[[str], str]
    counts: Counter[str] = field(default_factory=Counter)

    def draw(self, ref: RowRef) -> RowRef:
        """Return a row with its split."""
        if ref.split not in ("", ALL):
            raise InputError(
                f"--split: there are splits already, such as {ref.split!r} of the row {ref.key!r}; leave --split out"
            )
        split = self.shares.split_of(composed(self.group_of(ref.key)))
        self.counts[split] += 1
        return ref._replace(split=split)

    def notes(self) -> Iterator[str]:
        """Yield a warning for each drawn split that is too small."""
        return small_splits(self.shares, self.counts)
