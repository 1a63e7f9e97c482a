"""Draw the splits of pairs that have none: by a hash of each key, or exactly, with every class in its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from packer.errors import InputError, UsageError
from packer.pairs.candidates import Candidate, Candidates
from packer.pairs.layouts import Layout
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_exact import ClassPixels, draw_exact
from packer.pairs.template import composed
from readers.contract.manifest import ALL

NOT_EXACT: Mapping[str, str] = MappingProxyType({})
FEW_PAIRS, FEW_PERCENT = 5, 1
"""A drawn split with fewer pairs, or with a smaller part of all pairs, is reported."""


@dataclass
class SplitDrawer:
    """Draws the split of one pair after the other, the same for all with one capture `split_by`, and counts them."""

    shares: Shares
    split_by: str | None
    layout: Layout | None
    counts: Counter[str] = field(default_factory=Counter)

    def draw(self, pair: Candidate, exact: Mapping[str, str] = NOT_EXACT) -> str:
        """Return the split of a pair. `exact` has those that groups get for exact sizes."""
        group = self.group(pair)
        split = exact.get(group) or self.shares.split_of(group)
        self.counts[split] += 1
        return split

    def group(self, pair: Candidate) -> str:
        """Return what decides the split of a pair: its key, or the capture or column `split_by`."""
        if pair.split not in ("", ALL):
            raise InputError(
                f"--split: there are splits already, such as {pair.split!r} of {pair.image}; leave --split out, "
                "or give --image and --label without {split} to ignore these splits and any split lists"
            )
        if not self.split_by:
            return composed(pair.key)
        captures = dict(pair.captures) or (self.layout.captures(pair.image, pair.label) if self.layout else {})
        if self.split_by not in captures:
            names = ", ".join(captures) or "none"
            raise UsageError(f"--split-by {self.split_by}: no capture or column has this name; there are only {names}")
        return composed(captures[self.split_by])

    def notes(self, is_exact: bool = False) -> Iterator[str]:
        """Yield a warning for each drawn split that is too small."""
        advice = "" if is_exact else "; --split-exact draws splits of exact sizes"
        return (f"{words}{advice}" for words in small_splits(self.shares, self.counts))


def draw_splits(candidates: Candidates, drawer: SplitDrawer, pixels: Mapping[str, ClassPixels] | None) -> None:
    """Give each pair a split, of exact sizes if the pixels of the labels are given, by their paths."""
    exact: Mapping[str, str] = NOT_EXACT
    if pixels is not None:
        groups = [drawer.group(pair) for pair in candidates.pairs]
        exact = draw_exact(drawer.shares, groups, [pixels.get(pair.label, {}) for pair in candidates.pairs])
    candidates.pairs = [pair._replace(split=drawer.draw(pair, exact)) for pair in candidates.pairs]
    candidates.notes += drawer.notes(pixels is not None)


def small_splits(shares: Shares, counts: Mapping[str, int]) -> Iterator[str]:
    """Warn about drawn splits that are too small to measure anything on."""
    total = sum(counts.values())
    for name, share in shares.parts:
        if counts.get(name, 0) < max(FEW_PAIRS, FEW_PERCENT * total / 100):
            drawn = f"the split {name} gets {counts.get(name, 0)} of {total} pairs"
            yield f"{drawn}, for a share of {float(100 * share):g} %"
