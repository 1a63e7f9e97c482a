"""Findings: what is no error, but what people want to know before they train - leaks between splits, empty pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import first_of
from packer.pixels.row_statistics import FLAT
from readers.contract.tiles import Size

EXTREME_SHAPE = 4
"""From this many times as wide as high, or as high as wide, a picture is odd."""
NEAR_BITS = 3
"""Of the 64 bits of two difference hashes, at most so many differ where pictures are nearly the same."""
MOST_TOGETHER = 256
"""Hashes that share 16 bits are compared pair by pair, so many of them at most: dark pictures all look alike."""
LITTLE_LABELLED = 0.5


@dataclass(frozen=True)
class Seen:
    """An image: its name with the split before it, and how it looks."""

    split: str
    key: str
    look: str

    @property
    def name(self) -> str:
        return f"{self.split}/{self.key}"


@dataclass(frozen=True)
class Findings:
    """Every list is of names such as `train/street_01`; groups are of images that are the same."""

    across_splits: tuple[tuple[str, ...], ...]
    within_split: tuple[tuple[str, ...], ...]
    near: tuple[tuple[str, str], ...]
    one_colour: tuple[str, ...]
    extreme_shapes: tuple[str, ...]
    absent_classes: tuple[str, ...]
    ignored_share: float

    def to_json(self) -> dict[str, Any]:
        return {
            "duplicates_across_splits": [list(group) for group in self.across_splits],
            "duplicates_within_a_split": [list(group) for group in self.within_split],
            "near_duplicates_across_splits": [list(two) for two in self.near],
            "one_colour_images": list(self.one_colour),
            "extreme_shapes": list(self.extreme_shapes),
            "classes_that_never_occur": list(self.absent_classes),
            "ignored_share": round(self.ignored_share, 6),
        }

    def lines(self, most: int = 5) -> Iterator[str]:
        """What is worth a line, the worst first."""
        groups = [_joined(group, most) for group in self.across_splits]
        yield from _told("the same image in more than one split", groups, most)
        yield from _told("nearly the same image in two splits", [f"{a} ~ {b}" for a, b in self.near], most)
        groups = [_joined(group, most) for group in self.within_split]
        yield from _told("the same image more than once in a split", groups, most)
        yield from _told("images of one colour", self.one_colour, most)
        yield from _told("extreme shapes", self.extreme_shapes, most)
        yield from _told("classes that never occur", self.absent_classes, most)
        if self.ignored_share > LITTLE_LABELLED:
            yield f"{100 * self.ignored_share:.1f} % of the label pixels are ignored"


def find(
    seen: Sequence[Seen],
    sizes: Iterable[Size],
    classes: Mapping[str, int] = MappingProxyType({}),
    ignored: int = 0,
    near: bool = False,
) -> Findings:
    """Look at all images of a data set together. `classes` are their pixels, where these were counted."""
    flat = tuple(one.name for one in seen if one.look.endswith(FLAT))
    textured = [one for one in seen if not one.look.endswith(FLAT)]
    groups = list(_same(textured))
    total = sum(classes.values()) + ignored
    return Findings(
        across_splits=tuple(_names(group) for group in groups if len({one.split for one in group}) > 1),
        within_split=tuple(_names(group) for group in groups if len({one.split for one in group}) == 1),
        near=tuple(_near(textured)) if near else (),
        one_colour=flat,
        extreme_shapes=tuple(f"{h}x{w}" for h, w in sorted(sizes) if max(h, w) >= EXTREME_SHAPE * min(h, w)),
        absent_classes=tuple(name for name, count in classes.items() if not count and total),
        ignored_share=ignored / total if total else 0.0,
    )


def _told(what: str, names: Sequence[str], most: int) -> Iterator[str]:
    if names:
        yield f"{what} ({len(names)}): {', '.join(first_of(names, most))}"


def _joined(group: Sequence[str], most: int) -> str:
    """`train/a = val/b`; a long group by its first names."""
    return " = ".join(first_of(group, most))


def _names(group: Iterable[Seen]) -> tuple[str, ...]:
    return tuple(one.name for one in group)


def _same(seen: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Groups that look the same to the last digit."""
    looks = np.array([one.look.encode() for one in seen], np.bytes_)
    order = np.argsort(looks, kind="stable")
    ends = np.flatnonzero(looks[order][1:] != looks[order][:-1]) + 1
    for group in np.split(order, ends):
        if len(group) > 1:
            yield [seen[place] for place in group]


def _near(seen: Sequence[Seen]) -> list[tuple[str, str]]:
    """Pairs across splits whose hashes differ in few bits: of 4 parts of 16 bits, at least one is then the same."""
    hashes = np.array([int(one.look[8:], 16) for one in seen], np.uint64)
    looks = [one.look for one in seen]
    found: set[tuple[int, int]] = set()
    for shift in (0, 16, 32, 48):
        parts = (hashes >> np.uint64(shift)) & np.uint64(0xFFFF)
        order = np.argsort(parts, kind="stable")
        ends = np.flatnonzero(parts[order][1:] != parts[order][:-1]) + 1
        for group in np.split(order, ends):
            if 1 < len(group) <= MOST_TOGETHER:
                found |= _close(hashes, group)
    return [
        (seen[a].name, seen[b].name)
        for a, b in sorted(found)
        if seen[a].split != seen[b].split and looks[a] != looks[b]
    ]


def _close(hashes: NDArray[np.uint64], group: NDArray[np.intp]) -> set[tuple[int, int]]:
    """Places of a group whose hashes differ in few bits."""
    differing = hashes[group][:, None] ^ hashes[group][None]
    bits = np.unpackbits(differing.view(np.uint8).reshape(len(group), len(group), 8), axis=2).sum(2)
    rows, columns = np.nonzero(np.triu(bits <= NEAR_BITS, 1))
    return {(int(min(group[a], group[b])), int(max(group[a], group[b]))) for a, b in zip(rows, columns, strict=True)}
