"""Draw the splits of pairs that have none: by a rule for each key, or exactly, with every class in its share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from packer.errors import Problem, UsageError
from packer.pairs.candidates import Candidate, Candidates
from packer.pairs.layouts import Layout
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_exact import ClassPixels, draw_exact
from packer.pairs.split_rule import SplitDraw, SplitRule
from packer.pairs.template import composed

NOT_EXACT: Mapping[str, str] = MappingProxyType({})
WITHOUT = ", or give --image and --label without {split} to ignore these splits and any split lists"


class SplitDrawer:
    """Draws the split of one pair after the other, the same for all with one capture `split_by`."""

    def __init__(self, rule: SplitRule, split_by: str | None, layout: Layout | None) -> None:
        self.rule, self._draw, self._split_by, self._layout = rule, SplitDraw(rule), split_by, layout

    def draw(self, pair: Candidate, exact: Mapping[str, str] = NOT_EXACT) -> str:
        """Return the split of a pair. `exact` has those that groups get for exact sizes."""
        return self._draw.split_of(self.group(pair), exact) if self.draws(pair) else pair.split

    def draws(self, pair: Candidate) -> bool:
        """Return whether a pair gets a split."""
        return self._draw.draws(pair.split, pair.image, WITHOUT)

    def group(self, pair: Candidate) -> str:
        """Return what decides the split of a pair: its key, or the capture or column `split_by`."""
        if not self._split_by:
            return composed(pair.key)
        captures = dict(pair.captures) or (self._layout.captures(pair.image, pair.label) if self._layout else {})
        if self._split_by not in captures:
            names = ", ".join(captures) or "none"
            raise UsageError(f"--split-by {self._split_by}: no capture or column has this name; there are only {names}")
        return composed(captures[self._split_by])

    def problems(self) -> list[Problem]:
        """Return what is wrong once all pairs are drawn."""
        return self._draw.problems()

    def notes(self, is_exact: bool = False) -> Iterator[str]:
        """Yield a warning for each drawn split that is too small."""
        advice = "" if is_exact or not isinstance(self.rule, Shares) else "; --split-exact draws splits of exact sizes"
        return (f"{words}{advice}" for words in self.rule.notes(self._draw.counts))


def draw_splits(candidates: Candidates, drawer: SplitDrawer, pixels: Mapping[str, ClassPixels] | None) -> None:
    """Give each pair a split, of exact sizes if the pixels of the labels are given, by their paths."""
    exact: Mapping[str, str] = NOT_EXACT
    if pixels is not None and isinstance(drawer.rule, Shares):
        drawn = [pair for pair in candidates.pairs if drawer.draws(pair)]
        groups = [drawer.group(pair) for pair in drawn]
        exact = draw_exact(drawer.rule, groups, [pixels.get(pair.label, {}) for pair in drawn])
    candidates.pairs = [pair._replace(split=drawer.draw(pair, exact)) for pair in candidates.pairs]
    candidates.problems += drawer.problems()
    candidates.notes += drawer.notes(pixels is not None)
