"""`Folds`: a number of folds for cross-validation, drawn by a hash of each key as other splits are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from packer.errors import Problem
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_rule import SplitRule
from readers.contract.folds import FOLD, fold_name

MOST_FOLDS = 1000
TRAINING = ("train", "training", "tr")
"""The names of a split, in any case, whose rows get folds. `tr` is of nnU-Net: imagesTr."""
HELD_OUT = ("val", "valid", "validation")
"""The names of a split that folds have instead."""


class FoldRule(SplitRule):
    """Folds are drawn from the rows without a split, or of the training split. A test split stays apart."""

    option = "--folds"
    advice = "pack the rows to fold alone, with --only, then draw folds --from that pack"

    def is_drawn(self, split: str) -> bool:
        return super().is_drawn(split) or split.lower() in TRAINING

    def stays(self, split: str) -> bool:
        return split.lower() not in HELD_OUT and not FOLD.fullmatch(split)


@dataclass(frozen=True)
class Folds(FoldRule, Shares):
    """Folds of equal shares."""

    @classmethod
    def of(cls, count: int) -> Folds:
        """Return this number of folds."""
        return cls(tuple((fold_name(number), Fraction(1, count)) for number in range(count)))

    def problems(self, counts: Mapping[str, int], groups: Collection[str]) -> Iterator[Problem]:
        empty = tuple(name for name, _ in self.parts if not counts.get(name))
        if empty:
            yield Problem(f"has none of the {sum(counts.values())} rows", "draw fewer folds", empty, "fold", "empty")
