"""`SplitRule`: what decides the splits of a build; `SplitDraw`: gives one row after the other its split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from packer.errors import InputError, Problem
from readers.contract.manifest import ALL


class SplitRule(ABC):
    """Says which split the rows of a group get. A group is a key, or what several keys share, such as a patient."""

    option = "--split"
    names_groups = False
    """True if the rule must see all groups, because it has a list of them."""
    advice = "leave --split out"

    @abstractmethod
    def split_of(self, group: str) -> str:
        """Return the split of a group. Other groups do not change it."""

    def is_drawn(self, split: str) -> bool:
        """Return whether rows with this split get another one; by default those that have none."""
        return split in ("", ALL)

    def stays(self, split: str) -> bool:
        """Return whether rows with this split, which is not drawn, keep it. Otherwise they are refused."""
        return False

    def problems(self, counts: Mapping[str, int], groups: Collection[str]) -> Iterator[Problem]:
        """Yield what is wrong once all rows are drawn: `counts` has the rows of each split."""
        return iter(())

    def notes(self, counts: Mapping[str, int]) -> Iterator[str]:
        """Yield a warning for each split that got too few rows, and what else is worth to know."""
        return iter(())


@dataclass
class SplitDraw:
    """Gives one row after the other the split of its group, and counts them."""

    rule: SplitRule
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[str, None] = field(default_factory=dict)
    """The groups in the order of their first rows, if the rule must see them."""
    before: str | None = None
    """The split that the drawn rows had."""

    def draws(self, split: str, row: str, more: str = "") -> bool:
        """Return whether a row with this split gets another one. Raise InputError if it can neither get nor keep one.

        `more` is further advice.
        """
        rule = self.rule
        if rule.is_drawn(split):
            self.before = split if self.before is None else self.before
            if split != self.before:
                both = " and ".join(repr(name) if name else "none" for name in (self.before, split))
                raise InputError(f"{rule.option}: rows of one split are drawn, and there are {both}; rename one")
            return True
        if rule.stays(split):
            return False
        raise InputError(f"{rule.option}: there are splits already, such as {split!r} of {row}; {rule.advice}{more}")

    def split_of(self, group: str, exact: Mapping[str, str]) -> str:
        """Return the split of a row of this group. `exact` has those that groups get for exact sizes."""
        split = exact.get(group) or self.rule.split_of(group)
        self.counts[split] += 1
        if self.rule.names_groups:
            self.groups[group] = None
        return split

    def problems(self) -> list[Problem]:
        """Return what is wrong once all rows are drawn."""
        return list(self.rule.problems(self.counts, self.groups))
