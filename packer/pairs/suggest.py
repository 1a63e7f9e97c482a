"""Proposals: templates that would pair the files of a folder of no known layout, derived from the names found there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from packer.errors import UsageError
from packer.pairs.layouts import SPLIT_FOLDERS, Layout
from packer.pairs.match import match
from packer.pairs.paths import stem
from packer.pairs.template import PICTURES, Template, composed

MOST_LOOKED_AT = 200
"""Pictures whose partners are searched for, evenly taken from all."""
MOST_NAMESAKES = 2000
"""Pictures of one name that are compared, for data sets where each video has a 0000.png."""
MOST_TRIED = 5
"""Templates that are tried on all files."""
MOST_LESS_LIKELY = 16
"""How much less likely than the best a proposal may be."""

_IMAGE_WORDS = ("image", "img", "rgb", "photo", "picture", "jpeg", "jpg", "sat", "left", "ortho", "top", "input")
_LABEL_WORDS = ("label", "mask", "gt", "truth", "annot", "ann", "seg", "semantic", "sem", "ground", "m")
_OTHER_WORDS = (
    "instance",
    "depth",
    "pred",
    "panoptic",
    "object",
    "part",
    "disparity",
    "colo",
    "edge",
    "overlay",
    "dem",
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPLITS = "|".join(sorted(SPLIT_FOLDERS, key=len, reverse=True))
_SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{_SPLITS})(?![a-z])", re.IGNORECASE)
_SEPARATORS = ("_", "-", ".", " ")
_NEVER_LABELS = (".jpg", ".jpeg", ".jpe", ".jfif")


@dataclass(frozen=True)
class Proposal:
    """Templates for --image and --label, how many pairs they find, and how many files without a partner."""

    image: str
    label: str
    pairs: int
    unmatched: int


@dataclass(frozen=True, order=True)
class _Side:
    """What is an image's alone, or a label's: folders in the middle, what the name begins and ends with."""

    middle: tuple[str, ...]
    prefix: str
    suffix: str

    @property
    def words(self) -> list[str]:
        return [word.lower() for text in (*self.middle, self.prefix, self.suffix) for word in _WORD.findall(text)]


@dataclass(frozen=True, order=True)
class _Shape:
    """How an image and its label differ, and how many folders before and behind the difference they share."""

    image: _Side
    label: _Side
    heads: int
    tails: int
    """-1 for any number, where the key may hold these folders."""

    @property
    def named_otherwise(self) -> bool:
        """Whether the image's names say that it is something else, as a depth map or another label."""
        words = self.image.words
        return _any(words, (*_LABEL_WORDS, *_OTHER_WORDS)) and not _any(words, _IMAGE_WORDS)

    @property
    def likelihood(self) -> float:
        """How much the words in the names speak for an image and its label."""
        image, label = self.image.words, self.label.words
        power = 2 * _any(label, _LABEL_WORDS) - 3 * _any(label, _OTHER_WORDS) - 2 * _any(self.label.words, _IMAGE_WORDS)
        power += _any(image, _IMAGE_WORDS) - 4 * _any(image, (*_LABEL_WORDS, *_OTHER_WORDS))
        return float(2**power)


Folders = tuple[tuple[str, ...], tuple[str, ...]]
"""The folders that an image and its label share: before and behind those in which they differ."""


Affixes = tuple[str, str, str, str]
"""The prefix of an image's name and of a label's, the suffix of an image's name and of a label's."""


def propose(files: Iterable[str]) -> list[Proposal]:
    """Templates that pair some of the files, the likeliest first."""
    pictures = [composed(path) for path in files if path.lower().endswith(PICTURES) and not set("{}*") & set(path)]
    seen: dict[_Shape, set[tuple[str, Folders]]] = {}
    looked_at = pictures[:: max(1, len(pictures) // MOST_LOOKED_AT)]
    for path, shape, folders in _differences(pictures, looked_at):
        seen.setdefault(shape, set()).add((path, folders))
    found: dict[Proposal, float] = {}
    for shape in _likeliest({shape: len(votes) for shape, votes in seen.items()}, len(looked_at)):
        if one := _counted(pictures, *_templates(shape, [folders for _, folders in seen[shape]])):
            found.setdefault(one, shape.likelihood * one.pairs)
    return sorted(found, key=lambda one: (-found[one], one.unmatched, one.image, one.label))


def _likeliest(votes: dict[_Shape, int], looked_at: int) -> list[_Shape]:
    """The shapes worth trying: those whose words tell, or that many pictures have, and each in one direction only."""
    weights = {
        shape: shape.likelihood * count
        for shape, count in votes.items()
        if not shape.named_otherwise and (shape.likelihood > 1 or count * 5 >= looked_at)
    }
    chosen: list[_Shape] = []
    for shape in sorted(weights, key=lambda shape: (-weights[shape], shape)):
        turned = replace(shape, image=shape.label, label=shape.image)
        if turned not in chosen and weights[shape] * MOST_LESS_LIKELY >= max(weights.values()):
            chosen.append(shape)
    return chosen[:MOST_TRIED]


def _any(words: list[str], known: tuple[str, ...]) -> bool:
    """Whether one of the words is known, or begins with a known one that is not short."""
    return any(word == one or (len(one) > 2 and word.startswith(one)) for word in words for one in known)


def _counted(pictures: Sequence[str], image: str, label: str) -> Proposal | None:
    """What the templates find among all pictures, or None where they cannot be."""
    try:
        matches = match(pictures, Layout("", Template(image), Template(label), exclusive=False))
    except UsageError:
        return None
    pairs = len(matches.images.keys() & matches.labels.keys())
    if not pairs or matches.all_problems():
        return None
    return Proposal(image, label, pairs, len(matches.images.keys() ^ matches.labels.keys()))


def _differences(pictures: list[str], looked_at: list[str]) -> Iterator[tuple[str, _Shape, Folders]]:
    """For each path looked at, how it differs from those that may be its label."""
    by_name: dict[str, list[str]] = {}
    for path in pictures:
        if not path.lower().endswith(_NEVER_LABELS):
            by_name.setdefault(_name(path), []).append(path)
    forward, backward = sorted(by_name), sorted(name[::-1] for name in by_name)
    for path in looked_at:
        name = _name(path)
        names = {name, *_alike(forward, name), *(other[::-1] for other in _alike(backward, name[::-1]))}
        for other in sorted(names & by_name.keys()):
            if affixes := _affixes(name, other):
                for label in _nearest(path, by_name[other]):
                    yield path, *_shape(path, label, affixes)


def _name(path: str) -> str:
    return stem(path.rpartition("/")[2])


def _alike(names: list[str], name: str) -> list[str]:
    """The names that begin with as much as possible of this one."""
    place = bisect_left(names, name)
    near = {other: _common(name, other) for other in names[max(0, place - 8) : place + 9] if other != name}
    most = max(near.values(), default=0)
    return [other for other, length in near.items() if 0 < length == most]


def _nearest(path: str, others: list[str]) -> list[str]:
    """Those of the paths that share the most folders with a path."""
    distances = {other: _distance(path, other) for other in others[:MOST_NAMESAKES] if other != path}
    least = min(distances.values(), default=0)
    return [other for other, distance in distances.items() if distance == least]


def _distance(path: str, other: str) -> int:
    one, two, _ = _apart(path, other)
    return len(one) + len(two)


def _apart(path: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...], Folders]:
    """The folders that only one of two paths has, and those that both have before and behind."""
    one, two = path.split("/")[:-1], other.split("/")[:-1]
    heads = _common(one, two)
    tails = _common(one[heads:][::-1], two[heads:][::-1])
    shared = (tuple(one[:heads]), tuple(one[len(one) - tails :]))
    return tuple(one[heads : len(one) - tails]), tuple(two[heads : len(two) - tails]), shared


def _common(one: Sequence[str], two: Sequence[str]) -> int:
    """How many items are the same from the start."""
    return next((place for place, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))  # noqa: B905


def _affixes(image: str, label: str) -> Affixes | None:
    """What the names begin and end with where they differ, or None if they have no more in common."""
    if image == label:
        return "", "", "", ""
    core = _common(image, label)
    while core and not _breaks(image, label, core):
        core -= 1
    if core and not _numbered(image[core:], label[core:]):
        return "", "", image[core:], label[core:]
    image, label = image[::-1], label[::-1]
    core = _common(image, label)
    while core and not _breaks(image, label, core):
        core -= 1
    if core and not _numbered(image[core:], label[core:]):
        return image[core:][::-1], label[core:][::-1], "", ""
    return None


def _breaks(image: str, label: str, place: int) -> bool:
    """Whether both names may end, or begin something new, at this place."""
    return all(
        rest == "" or rest.startswith(_SEPARATORS) or (before.isdigit() and rest[0].isalpha())
        for rest, before in ((image[place:], image[place - 1]), (label[place:], label[place - 1]))
    )


def _numbered(image: str, label: str) -> bool:
    """Whether the difference is rather one of two numbers."""
    return any(letter.isdigit() for letter in image) and any(letter.isdigit() for letter in label)


def _shape(path: str, other: str, affixes: Affixes) -> tuple[_Shape, Folders]:
    """How an image and a label differ, without what only this pair has."""
    image_prefix, label_prefix, image_suffix, label_suffix = affixes
    one, two, (head, tail) = _apart(path, other)
    if not one and not two and not image_prefix + label_prefix:
        head, tail = (), head
        endings = [f".{text.rpartition('.')[2].lower()}" for text in (path, other)]
        if endings[0] != endings[1]:
            image_suffix, label_suffix = image_suffix + endings[0], label_suffix + endings[1]
    image = _Side(tuple(_SPLIT_WORD.sub("{split}", folder) for folder in one), image_prefix, image_suffix)
    label = _Side(tuple(_SPLIT_WORD.sub("{split}", folder) for folder in two), label_prefix, label_suffix)
    tails = len(tail) if image_prefix or label_prefix else -1
    return _Shape(image, label, len(head), tails), (head, tail)


def _templates(shape: _Shape, folders: list[Folders]) -> tuple[str, str]:
    """The templates that a shape gives with the folders that it was seen in."""
    heads = [_placeholder(position, {head[position] for head, _ in folders}) for position in range(shape.heads)]
    tails = [tail for _, tail in folders]
    least = min(map(len, tails)) if shape.tails < 0 else shape.tails
    kept = [_placeholder(shape.heads + place, {tail[place] for tail in tails}) for place in range(least)]
    if shape.tails < 0:  # the key may hold what varies, so that only what comes before is said
        kept = kept[: next((place for place, folder in enumerate(kept) if "{folder" in folder), len(kept))]
        kept = kept[: next((place + 1 for place, folder in enumerate(kept) if "{split}" in folder), len(kept))]
    image, label = (
        "/".join([*heads, *side.middle, *kept, f"{side.prefix}{{key}}{side.suffix}"])
        for side in (shape.image, shape.label)
    )
    return _once(image), _once(label)


def _placeholder(position: int, found: set[str]) -> str:
    """What stands for the folders found at a place: the one that it is, a split, or any folder."""
    general = {_SPLIT_WORD.sub("{split}", folder, count=1) for folder in found}
    return general.pop() if len(general) == 1 else f"{{folder{position + 1}}}"


def _once(template: str) -> str:
    """The first {split} captures, the others are as they are."""
    before, split, after = template.partition("{split}")
    return before + split + after.replace("{split}", "*")
