"""Compare the paths of pictures: the differences between a path and other paths that may be its label."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packer.pairs.layouts import SPLIT_FOLDERS
from packer.pairs.paths import stem

MOST_NAMESAKES = 2000
"""Pictures of one name that are compared. In some data sets each video has a 0000.png."""
NEIGHBOURS = 8
"""Names before and after a name, in sorted order, that are compared with it."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPLITS = "|".join(sorted(SPLIT_FOLDERS, key=len, reverse=True))
_SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{_SPLITS})(?![a-z])", re.IGNORECASE)
_SEPARATORS = ("_", "-", ".", " ")
_NEVER_LABELS = (".jpg", ".jpeg", ".jpe", ".jfif")

SharedFolders = tuple[tuple[str, ...], tuple[str, ...]]
"""The folders that an image and its label share, before and after those in which they differ."""
Affixes = tuple[str, str, str, str]
"""The prefix of an image's name and of a label's, then the suffix of an image's name and of a label's."""


@dataclass(frozen=True, order=True)
class Side:
    """The part of a path that only images have, or only labels: folders, and the prefix and suffix of the name."""

    folders: tuple[str, ...]
    prefix: str
    suffix: str

    @property
    def words(self) -> list[str]:
        return [word.lower() for text in (*self.folders, self.prefix, self.suffix) for word in _WORD.findall(text)]


@dataclass(frozen=True, order=True)
class NameDifference:
    """The difference between an image path and a label path, and the number of shared folders around it."""

    image: Side
    label: Side
    heads: int
    tails: int
    """-1 for any number: the key may contain these folders."""


def differences(pictures: list[str], sample: list[str]) -> Iterator[tuple[str, NameDifference, SharedFolders]]:
    """Yield each path of a sample with its differences from the pictures that may be its label."""
    by_name: dict[str, list[str]] = {}
    for path in pictures:
        if not path.lower().endswith(_NEVER_LABELS):
            by_name.setdefault(_name(path), []).append(path)
    forward, backward = sorted(by_name), sorted(name[::-1] for name in by_name)
    for path in sample:
        name = _name(path)
        names = {name, *_alike(forward, name), *(other[::-1] for other in _alike(backward, name[::-1]))}
        for other in sorted(names & by_name.keys()):
            if affixes := _affixes(name, other):
                for label in _nearest(path, by_name[other]):
                    yield path, *_difference(path, label, affixes)


def with_split(folder: str) -> str:
    """Replace the first name of a split in a folder name by `{split}`."""
    return _SPLIT_WORD.sub("{split}", folder, count=1)


def _name(path: str) -> str:
    return stem(path.rpartition("/")[2])


def _alike(names: list[str], name: str) -> list[str]:
    """Return the names that share the longest beginning with a name."""
    index = bisect_left(names, name)
    near = {
        other: _common(name, other)
        for other in names[max(0, index - NEIGHBOURS) : index + NEIGHBOURS + 1]
        if other != name
    }
    most = max(near.values(), default=0)
    return [other for other, length in near.items() if 0 < length == most]


def _nearest(path: str, others: list[str]) -> list[str]:
    """Return the paths that share the most folders with a path."""
    distances = {other: _distance(path, other) for other in others[:MOST_NAMESAKES] if other != path}
    least = min(distances.values(), default=0)
    return [other for other, distance in distances.items() if distance == least]


def _distance(path: str, other: str) -> int:
    first, second, _ = _split_folders(path, other)
    return len(first) + len(second)


def _split_folders(path: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...], SharedFolders]:
    """Return the folders that only the first or only the second path has, and the shared ones around them."""
    first, second = path.split("/")[:-1], other.split("/")[:-1]
    heads = _common(first, second)
    tails = _common(first[heads:][::-1], second[heads:][::-1])
    shared = (tuple(first[:heads]), tuple(first[len(first) - tails :]))
    return tuple(first[heads : len(first) - tails]), tuple(second[heads : len(second) - tails]), shared


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the equal items from the start."""
    equal = (index for index, (a, b) in enumerate(zip(first, second)) if a != b)  # noqa: B905
    return next(equal, min(len(first), len(second)))


def _affixes(image: str, label: str) -> Affixes | None:
    """Return the prefixes and suffixes in which two names differ, or None if the names have nothing in common."""
    if image == label:
        return "", "", "", ""
    if suffixes := _suffixes(image, label):
        return "", "", *suffixes
    if prefixes := _suffixes(image[::-1], label[::-1]):
        return prefixes[0][::-1], prefixes[1][::-1], "", ""
    return None


def _suffixes(image: str, label: str) -> tuple[str, str] | None:
    core = _common(image, label)
    while core and not _breaks(image, label, core):
        core -= 1
    return (image[core:], label[core:]) if core and not _differ_by_number(image[core:], label[core:]) else None


def _breaks(image: str, label: str, index: int) -> bool:
    """Return True if both names end at this index or begin a new word there."""
    return all(
        rest == "" or rest.startswith(_SEPARATORS) or (before.isdigit() and rest[0].isalpha())
        for rest, before in ((image[index:], image[index - 1]), (label[index:], label[index - 1]))
    )


def _differ_by_number(image: str, label: str) -> bool:
    """Return True for two frames of one video rather than an image and its label."""
    return any(letter.isdigit() for letter in image) and any(letter.isdigit() for letter in label)


def _difference(path: str, other: str, affixes: Affixes) -> tuple[NameDifference, SharedFolders]:
    """Return the difference between an image and its label, without the names that only this pair has."""
    image_prefix, label_prefix, image_suffix, label_suffix = affixes
    first, second, (head, tail) = _split_folders(path, other)
    if not first and not second and not image_prefix + label_prefix:
        head, tail = (), head
        endings = [f".{text.rpartition('.')[2].lower()}" for text in (path, other)]
        if endings[0] != endings[1]:
            image_suffix, label_suffix = image_suffix + endings[0], label_suffix + endings[1]
    image = Side(tuple(_SPLIT_WORD.sub("{split}", folder) for folder in first), image_prefix, image_suffix)
    label = Side(tuple(_SPLIT_WORD.sub("{split}", folder) for folder in second), label_prefix, label_suffix)
    tails = len(tail) if image_prefix or label_prefix else -1
    return NameDifference(image, label, len(head), tails), (head, tail)
