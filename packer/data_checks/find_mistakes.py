"""Look for likely mistakes in the data: duplicates across splits, images of one colour, classes that never occur."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

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
from packer.data_checks.image_hashes import ImageHashes, find_near, find_same
from packer.data_checks.no_data import find_no_data
from readers.contract.statistics import ClassStatistics
from readers.contract.tiles import Size, size_text

VOID_NAMES = frozenset(("void", "unlabeled", "unlabelled", "ignore", "ignored", "undefined", "unannotated"))
BACKGROUND = "background"
"""A background next to a single class is needed; next to several classes it may be meant to be ignored."""

EXTREME_SHAPE = 4
"""A picture at least this many times as wide as high, or as high as wide, is reported."""
MOST_IGNORED = 0.5
"""A larger share of ignored label pixels is reported."""


@dataclass(frozen=True)
class ClassCounts:
    """The label pixels of each class in each split. `is_known`: an earlier generation has the same classes."""

    names: tuple[str, ...]
    splits: Mapping[str, ClassStatistics]
    is_known: bool = False


def find_mistakes(
    images: ImageHashes,
    sizes: Iterable[Size],
    labels: ClassCounts | None = None,
    near: bool = False,
    accepted: Iterable[str] = (),
    counted: Iterable[str] = (),
) -> Findings:
    """Check all images of a data set together, and its labels, if they were counted.

    `counted` are the words of what sources counted."""
    shapes = [size_text(size) for size in sorted(sizes) if max(size[-2:]) >= EXTREME_SHAPE * min(size[-2:])]
    ignored, total = _ignored(labels)
    findings = [
        *_of_images(images, near),
        *find_no_data(counted),
        *(Finding(EXTREME_SHAPE_KIND, shape) for shape in shapes),
    ]
    if labels and total:
        findings += _of_labels(labels)
    if total and ignored / total > MOST_IGNORED:
        findings.append(Finding(IGNORED_PIXELS, ""))
    return Findings(tuple(findings), ignored / total if total else 0.0, frozenset(accepted))


def _of_images(images: ImageHashes, near: bool) -> Iterator[Finding]:
    """Yield groups of images that are the same, pairs that nearly are, and images of one colour."""
    same = list(find_same(images))
    pairs = find_near(images) if near else []
    flat = images.flat.tolist()
    name_of = images.images(chain(*same, *pairs, flat))
    for group in same:
        kind = LEAKAGE if len({name_of[image][0] for image in group}) > 1 else DUPLICATES
        yield _of_group(kind, [name_of[image] for image in group])
    for pair in pairs:
        yield _of_group(NEAR_LEAKAGE, [name_of[image] for image in pair])
    for image in flat:
        split, key = name_of[image]
        name = f"{split}/{key}"
        yield Finding(ONE_COLOUR, name, (name,), (split,))  # of some data sets that is every image


def _of_group(kind: str, group: Sequence[tuple[str, str]]) -> Finding:
    pairs = tuple(f"{split}/{key}" for split, key in group)
    return Finding(kind, "=".join(pairs), pairs, tuple(dict.fromkeys(split for split, _ in group)))


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
        if not labels.is_known and (word in VOID_NAMES or (word == BACKGROUND and len(labels.names) > 2)):
            yield Finding(VOID_CLASS, name, classes=(name,))
