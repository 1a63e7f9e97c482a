"""Found pairs: with what they were found by, and everything that was not right, gathered to be told at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, and what Python makes of bytes that are no UTF-8: garbled in every list and log from here on."""


class FoundPair(NamedTuple):
    """A pair as found: `place` is the line that names it, if one does; `captures` is what else a table says of it."""

    split: str
    key: str
    image: str
    label: str
    place: str = ""
    captures: tuple[tuple[str, str], ...] = ()


@dataclass
class Found:
    """What is wrong stops a build; what is missing does so unless it is to be skipped; notes are told only."""

    pairs: list[FoundPair] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_told(self, told: Found) -> Found:
        """This, with what is to be told of elsewhere."""
        self.problems += told.problems
        self.notes += told.notes
        return self

    def add_named(self, pairs: Iterable[FoundPair]) -> None:
        """Take pairs that lines name, each image and each key of a split once."""
        images: dict[str, FoundPair] = {}
        keys: dict[tuple[str, str], FoundPair] = {}
        for pair in pairs:
            first = images.setdefault(pair.image, pair)
            if first == pair or (first.split, first.label) != (pair.split, pair.label):
                self._add_named(pair, first, keys.setdefault((pair.split, pair.key), pair))
            else:
                self.notes.append(f"{pair.place}: says again what {first.place} says")

    def _add_named(self, pair: FoundPair, same_image: FoundPair, same_key: FoundPair) -> None:
        if same_image.split != pair.split:
            self.problems.append(
                f"{pair.place}: {pair.image} is in {pair.split or 'no split'}, "
                f"and in {same_image.split or 'no split'} by {same_image.place}"
            )
        elif same_key is not pair:
            self.problems.append(f"{pair.place}: the key {pair.key!r} has another pair at {same_key.place}")
        elif pair.image == pair.label:
            self.problems.append(f"{pair.place}: {pair.image} is named as image and as label")
        elif UNWRITABLE.search(pair.key + pair.image + pair.label):
            self.problems.append(f"{pair.place}: the name has control characters or is not UTF-8; rename the file")
        else:
            self.pairs.append(pair)
