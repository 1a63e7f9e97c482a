"""Draw splits of exact sizes, with every class in its share: pairs depend on each other, unlike a draw by hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from types import MappingProxyType

from packer.pairs.split_by_hash import Shares, group_hash

ClassPixels = Mapping[int, int]
"""The label pixels of a pair by class."""
NOT_COUNTED: Mapping[str, ClassPixels] = MappingProxyType({})


def draw_exact(shares: Shares, groups: Sequence[str], pixels: Sequence[ClassPixels]) -> dict[str, str]:
    """Return the split of each group. `groups` names the group of every pair.

    The rarest class is dealt out first, its largest groups first, each to the split that lacks most of its share. A
    full split gets nothing more, so every split has its exact size. Groups of several pairs are not cut, so with them
    the sizes are approximate.
    """
    deal = _Deal(shares, groups, pixels)
    while deal.waiting:
        rare = min((name for name, count in deal.spread.items() if count), key=deal.rarity, default=None)
        members = deal.members(rare)
        for group in members:
            deal.assign(group, rare)
    return deal.split_of


class _Deal:
    """The groups that wait for a split, and what each split still needs."""

    def __init__(self, shares: Shares, groups: Sequence[str], pixels: Sequence[ClassPixels]) -> None:
        self.split_of: dict[str, str] = {}
        self._pairs = Counter(groups)
        self._pixels: dict[str, Counter[int]] = {group: Counter() for group in sorted(self._pairs, key=group_hash)}
        for group, counts in zip(groups, pixels, strict=True):
            self._pixels[group].update({name: count for name, count in counts.items() if count})
        self.waiting = dict.fromkeys(self._pixels)
        self.spread = Counter(name for counts in self._pixels.values() for name in counts)
        """The number of waiting groups that have a class."""
        self._room = exact_sizes(shares, len(groups))
        parts = lcm(*(share.denominator for _, share in shares.parts))
        self._parts = {name: int(share * parts) for name, share in shares.parts}
        total = sum((Counter(counts) for counts in self._pixels.values()), Counter[int]())
        self._need = {name: {of: count * part for of, count in total.items()} for name, part in self._parts.items()}
        self._whole = parts

    def rarity(self, name: int) -> tuple[int, int]:
        return self.spread[name], name

    def members(self, name: int | None) -> list[str]:
        """Return the waiting groups with this class, the largest first; without a class, all that wait."""
        if name is None:
            return list(self.waiting)
        groups = [group for group in self.waiting if name in self._pixels[group]]
        return sorted(groups, key=lambda group: -self._pixels[group][name])

    def assign(self, group: str, name: int | None) -> None:
        """Give the group to a split that has room and lacks most of the class, relative to its share."""
        size = self._pairs[group]
        fitting = [split for split, room in self._room.items() if room >= size] or list(self._room)
        best = max(
            fitting, key=lambda split: (self._lack(split, name), Fraction(self._room[split], self._parts[split]))
        )
        self.split_of[group] = best
        self._room[best] -= size
        del self.waiting[group]
        for of, count in self._pixels[group].items():
            self.spread[of] -= 1
            self._need[best][of] -= count * self._whole

    def _lack(self, split: str, name: int | None) -> float:
        return self._room[split] if name is None else self._need[split][name] / self._parts[split]


def exact_sizes(shares: Shares, count: int) -> dict[str, int]:
    """Return the number of pairs of each split: rounded down, and the rest to those with the largest remainders."""
    sizes = {name: int(share * count) for name, share in shares.parts}
    remainders = sorted(shares.parts, key=lambda part: sizes[part[0]] - part[1] * count)
    for name, _ in remainders[: count - sum(sizes.values())]:
        sizes[name] += 1
    return sizes
