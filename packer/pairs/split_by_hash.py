"""Draw splits by a hash of the key, so that the split of a pair depends on nothing but its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b

from packer.errors import UsageError
from packer.pairs.split_rule import SplitRule
from readers.contract.manifest import ALL, NAME

FEW_PAIRS, FEW_PERCENT = 5, 1
"""A drawn split with fewer pairs, or with a smaller part of all pairs, is reported."""
DEFAULT_NAMES = {2: ("train", "val"), 3: ("train", "val", "test")}


@dataclass(frozen=True)
class Shares(SplitRule):
    """The splits, and the share of all keys that each gets on average. The shares add up to one."""

    parts: tuple[tuple[str, Fraction], ...]

    @classmethod
    def parse(cls, text: str) -> Shares:
        """Parse `80/10/10` or `train=80,val=10,test=10`."""
        if "=" in text:
            parts = [part.partition("=")[::2] for part in text.split(",")]
        else:
            percents = text.split("/")
            parts = list(zip(DEFAULT_NAMES.get(len(percents), ()), percents, strict=False))
        names = [name.strip() for name, _ in parts]
        shares = [_percent(text, percent) for _, percent in parts]
        if not parts or any(not NAME.fullmatch(name) or name == ALL for name in names) or len(set(names)) < len(names):
            expected = "expected percents such as 80/20, 80/10/10 or train=80,val=10,test=10"
            raise UsageError(f"--split {text}: {expected}{_meant(text)}")
        if sum(shares) != 1:
            total = f"{float(sum(shares) * 100):g}"
            raise UsageError(f"--split {text}: the percents add up to {total}, not to 100{_meant(text)}")
        return cls(tuple(zip(names, shares, strict=True)))

    def split_of(self, group: str) -> str:
        """Return the split of all keys of a group. Other groups do not change it."""
        position = Fraction(group_hash(group), 1 << 64)
        for name, share in self.parts:
            position -= share
            if position < 0:
                return name
        raise AssertionError("the shares add up to one, and a hash is below it")

    def notes(self, counts: Mapping[str, int]) -> Iterator[str]:
        """Warn about drawn splits that are too small to measure anything on."""
        total = sum(counts.values())
        for name, share in self.parts:
            if counts.get(name, 0) < max(FEW_PAIRS, FEW_PERCENT * total / 100):
                drawn = f"the split {name} gets {counts.get(name, 0)} of {total} pairs"
                yield f"{drawn}, for a share of {float(100 * share):g} %"


def _percent(text: str, percent: str) -> Fraction:
    number = re.fullmatch(r"\s*(\d{1,2}(?:\.\d{1,9})?)\s*", percent, re.ASCII)
    share = Fraction(number[1] if number else 0) / 100
    if not share:
        wrong = f"{percent.strip()!r} is not a percentage above 0 and below 100"
        raise UsageError(f"--split {text}: {wrong}{_meant(text)}")
    return share


def _meant(text: str) -> str:
    """Return the end of a message: the percents of shares of 1 or of 10, or the same with the right signs."""
    names, separator = re.findall(r"([A-Za-z_]\w*)\s*[=:]", text), "," if re.search("[A-Za-z]", text) else "/"
    numbers = [Fraction(number) for number in re.findall(r"\d{1,3}(?:\.\d{1,9})?", text, re.ASCII)]
    if sum(numbers) not in (1, 10, 100) or len(numbers) < 2 or len(names) not in (0, len(numbers)):
        return ""
    percents = [f"{float(100 * number / sum(numbers)):g}" for number in numbers]
    parts = [f"{name}={percent}" for name, percent in zip(names, percents, strict=True)] if names else percents
    return f"; did you mean {separator.join(parts)}?"


def group_hash(group: str) -> int:
    """Hash differently from the cutting of shards: otherwise a split would hold only keys that never end a shard."""
    return int.from_bytes(blake2b(group.encode(), digest_size=8, person=b"segpack split").digest(), "big")
