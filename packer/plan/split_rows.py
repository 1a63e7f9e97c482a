"""`RowSplits`: draw the splits of rows that are not files of a folder, by a rule for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from packer.errors import Problem
from packer.pairs.draw_splits import NOT_EXACT
from packer.pairs.split_rule import SplitDraw, SplitRule
from packer.pairs.template import composed
from packer.recipe.row_ref import RowRef


class RowSplits:
    """Draws the split of one row after the other, the same for all rows of a group."""

    def __init__(self, rule: SplitRule, group_of: Callable[[str], str]) -> None:
        self._draw, self._group_of = SplitDraw(rule), group_of

    def draw(self, ref: RowRef) -> RowRef:
        """Return a row with its split."""
        if not self._draw.draws(ref.split, f"the row {ref.key!r}"):
            return ref
        return ref._replace(split=self._draw.split_of(composed(self._group_of(ref.key)), NOT_EXACT))

    def problems(self) -> list[Problem]:
        """Return what is wrong once all rows are drawn."""
        return self._draw.problems()

    def notes(self) -> Iterator[str]:
        """Yield a warning for each drawn split that is too small."""
        return self._draw.rule.notes(self._draw.counts)
