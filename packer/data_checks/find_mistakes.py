"""Look for likely mistakes in the data: duplicates across splits, images of one colour, classes that never occur."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.data_checks.findings import (
    ABSENT_CLASS,
    ABSENT_IN_SPLIT,
    DUPLICATES,
    EXTREME_SHAPE_KIND,
    IGNORED_PIXELS,
    LEAKAGE,
    NEAR_LEAKAGE,
    ONE_COLOUR,
    VOID_CLASS,
    Finding,
    Findings,
)
from readers.contract.receipt import FLAT
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import Size

VOID_NAMES = frozenset(("void", "unlabeled", "unlabelled", "ignore", "ignored", "undefined", "unannotated"))
BACKGROUND = "background"
"""A background next to a single class is needed; next to several classes it may be meant to be ignored."""

EXTREME_SHAPE = 4
"""A picture at least this many times as wide as high, or as high as wide, is reported."""
NEAR_BITS = 3
"""Two pictures are nearly the same if at most this many of the 64 bits of their difference hashes differ."""
MOST_TOGETHER = 256
"""Hashes that share 16 bits are compared pair by pair, except in larger groups: dark pictures have similar hashes."""
MOST_IGNORED = 0.5
"""A larger share of ignored label pixels is reported."""


class HashedImage(NamedTuple):
    """An image and its `image_hash`."""

    split: str
    key: str
    hash: str

    @property
    def name(self) -> str:
        return f"{self.split}/{self.key}"


@dataclass(frozen=True)
class ClassCounts:
    """The label pixels of each class in each split. `known`: an earlier generation has the same classes."""

    names: tuple[str, ...]
    splits: Mapping[str, ClassStatistics]
    known: bool = False


def find_mistakes(
    images: Sequence[HashedImage],
    sizes: Iterable[Size],
    labels: ClassCounts | None = None,
    near: bool = False,
    accepted: Iterable[str] = (),
) -> Findings:
    """Check all images of a data set together, and its labels, if they were counted."""
    is_flat = [image.hash.endswith(FLAT) for image in images]
    textured = [image for image, flat in zip(images, is_flat, strict=True) if not flat] if any(is_flat) else images
    shapes = [f"{h}x{w}" for h, w in sorted(sizes) if max(h, w) >= EXTREME_SHAPE * min(h, w)]
    ignored, total = _ignored(labels)
    found = [
        *(
            _of_images(LEAKAGE if len({image.split for image in group}) > 1 else DUPLICATES, group)
            for group in _same(textured)
        ),
        *(_of_images(NEAR_LEAKAGE, pair) for pair in (_near(textured) if near else ())),
        *(_of_images(ONE_COLOUR, [image]) for image, flat in zip(images, is_flat, strict=True) if flat),
        *(Finding(EXTREME_SHAPE_KIND, shape) for shape in shapes),
        *(_of_labels(labels) if labels and total else ()),
        *([Finding(IGNORED_PIXELS, "")] if total and ignored / total > MOST_IGNORED else []),
    ]
    return Findings(tuple(found), ignored / total if total else 0.0, frozenset(accepted))


def _of_images(kind: str, group: Sequence[HashedImage]) -> Finding:
    names = tuple(image.name for image in group)
    return Finding(kind, "=".join(names), names, tuple(dict.fromkeys(image.split for image in group)))


def _ignored(labels: ClassCounts | None) -> tuple[int, int]:
    """Return the number of ignored label pixels, and of all of them."""
    splits = labels.splits.values() if labels else ()
    return sum(pixels.ignored for pixels in splits), sum(pixels.count for pixels in splits)


def _of_labels(labels: ClassCounts) -> Iterator[Finding]:
    """Yield the classes that do not occur, everywhere or in one split, and those that are likely not to be learnt."""
    for index, name in enumerate(labels.names):
        lacking = [split for split, pixels in labels.splits.items() if pixels.count and not pixels.classes[index]]
        if not any(pixels.classes[index] for pixels in labels.splits.values()):
            yield Finding(ABSENT_CLASS, name, splits=tuple(labels.splits), classes=(name,))
        else:
            for split in lacking:
                yield Finding(ABSENT_IN_SPLIT, f"{split}/{name}", splits=(split,), classes=(name,))
        word = name.strip().lower()
        if not labels.known and (word in VOID_NAMES or (word == BACKGROUND and len(labels.names) > 2)):
            yield Finding(VOID_CLASS, name, classes=(name,))


def _same(images: Sequence[HashedImage]) -> Iterator[list[HashedImage]]:
    """Yield groups of images with equal hashes."""
    hashes = np.array([image.hash.encode() for image in images], np.bytes_)
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    starts = np.flatnonzero(np.append(True, sorted_hashes[1:] != sorted_hashes[:-1]))[: len(images)]
    counts = np.diff(starts, append=len(images))
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        yield [images[index] for index in order[start : start + count].tolist()]


def _near(images: Sequence[HashedImage]) -> list[tuple[HashedImage, HashedImage]]:
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
        (images[a], images[b])
        for a, b in sorted(found)
        if images[a].split != images[b].split and images[a].hash != images[b].hash
    ]


def _close(hashes: NDArray[np.uint64], group: NDArray[np.intp]) -> set[tuple[int, int]]:
    """Return the index pairs of a group whose hashes differ in few bits."""
    differing = hashes[group][:, None] ^ hashes[group][None]
    bits = np.unpackbits(differing.view(np.uint8).reshape(len(group), len(group), 8), axis=2).sum(2)
    rows, columns = np.nonzero(np.triu(bits <= NEAR_BITS, 1))
    return {(int(min(group[a], group[b])), int(max(group[a], group[b]))) for a, b in zip(rows, columns, strict=True)}
