"""Look for likely mistakes in the data: duplicates across splits, images of one colour, classes that never occur."""

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
"""A picture at least this many times as wide as high, or as high as wide, is reported."""
NEAR_BITS = 3
"""Two pictures are nearly the same if at most this many of the 64 bits of their difference hashes differ."""
MOST_TOGETHER = 256
"""Hashes that share 16 bits are compared pair by pair, except in larger groups: dark pictures have similar hashes."""
MOST_IGNORED = 0.5
"""A larger share of ignored label pixels is reported."""


@dataclass(frozen=True)
class HashedImage:
    """An image and its `image_hash`."""

    split: str
    key: str
    hash: str

    @property
    def name(self) -> str:
        return f"{self.split}/{self.key}"


@dataclass(frozen=True)
class LikelyMistakes:
    """Names of images, such as `train/street_01`; a group holds images that are the same."""

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
        """Yield a line for each kind of mistake that was found, the worst first."""
        groups = [_joined(group, most) for group in self.across_splits]
        yield from _line("the same image in more than one split", groups, most)
        yield from _line("nearly the same image in two splits", [f"{a} ~ {b}" for a, b in self.near], most)
        groups = [_joined(group, most) for group in self.within_split]
        yield from _line("the same image more than once in a split", groups, most)
        yield from _line("images of one colour", self.one_colour, most)
        yield from _line("extreme shapes", self.extreme_shapes, most)
        yield from _line("classes that never occur", self.absent_classes, most)
        if self.ignored_share > MOST_IGNORED:
            yield f"{100 * self.ignored_share:.1f} % of the label pixels are ignored"


def find_mistakes(
    images: Sequence[HashedImage],
    sizes: Iterable[Size],
    classes: Mapping[str, int] = MappingProxyType({}),
    ignored: int = 0,
    near: bool = False,
) -> LikelyMistakes:
    """Check all images of a data set together. `classes` holds the label pixels of each class, if they were counted."""
    flat = tuple(image.name for image in images if image.hash.endswith(FLAT))
    textured = [image for image in images if not image.hash.endswith(FLAT)]
    groups = list(_same(textured))
    total = sum(classes.values()) + ignored
    return LikelyMistakes(
        across_splits=tuple(_names(group) for group in groups if len({image.split for image in group}) > 1),
        within_split=tuple(_names(group) for group in groups if len({image.split for image in group}) == 1),
        near=tuple(_near(textured)) if near else (),
        one_colour=flat,
        extreme_shapes=tuple(f"{h}x{w}" for h, w in sorted(sizes) if max(h, w) >= EXTREME_SHAPE * min(h, w)),
        absent_classes=tuple(name for name, count in classes.items() if not count and total),
        ignored_share=ignored / total if total else 0.0,
    )


def _line(warning: str, names: Sequence[str], most: int) -> Iterator[str]:
    if names:
        yield f"{warning} ({len(names)}): {', '.join(first_of(names, most))}"


def _joined(group: Sequence[str], most: int) -> str:
    """Return `train/a = val/b`; of a long group only the first names."""
    return " = ".join(first_of(group, most))


def _names(group: Iterable[HashedImage]) -> tuple[str, ...]:
    return tuple(image.name for image in group)


def _same(images: Sequence[HashedImage]) -> Iterator[list[HashedImage]]:
    """Yield groups of images with equal hashes."""
    hashes = np.array([image.hash.encode() for image in images], np.bytes_)
    order = np.argsort(hashes, kind="stable")
    ends = np.flatnonzero(hashes[order][1:] != hashes[order][:-1]) + 1
    for group in np.split(order, ends):
        if len(group) > 1:
            yield [images[index] for index in group]


def _near(images: Sequence[HashedImage]) -> list[tuple[str, str]]:
    """Return pairs across splits whose hashes differ in few bits. One of the four parts of 16 bits is then equal."""
    hashes = np.array([int(image.hash[8:], 16) for image in images], np.uint64)
    found: set[tuple[int, int]] = set()
    for shift in (0, 16, 32, 48):
        parts = (hashes >> np.uint64(shift)) & np.uint64(0xFFFF)
        order = np.argsort(parts, kind="stable")
        ends = np.flatnonzero(parts[order][1:] != parts[order][:-1]) + 1
        for group in np.split(order, ends):
            if 1 < len(group) <= MOST_TOGETHER:
                found |= _close(hashes, group)
    return [
        (images[a].name, images[b].name)
        for a, b in sorted(found)
        if images[a].split != images[b].split and images[a].hash != images[b].hash
    ]


def _close(hashes: NDArray[np.uint64], group: NDArray[np.intp]) -> set[tuple[int, int]]:
    """Return the index pairs of a group whose hashes differ in few bits."""
    differing = hashes[group][:, None] ^ hashes[group][None]
    bits = np.unpackbits(differing.view(np.uint8).reshape(len(group), len(group), 8), axis=2).sum(2)
    rows, columns = np.nonzero(np.triu(bits <= NEAR_BITS, 1))
    return {(int(min(group[a], group[b])), int(max(group[a], group[b]))) for a, b in zip(rows, columns, strict=True)}
