"""Suggest templates for a folder without a known layout, from the names of its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from packer.errors import UsageError, counted
from packer.pairs.differences import NameDifference, SharedFolders, differences, with_split
from packer.pairs.folder_names import by_folder
from packer.pairs.layouts import Layout
from packer.pairs.match import match_files
from packer.pairs.template import PICTURES, Template, composed

SAMPLE = 200
"""Pictures whose labels are searched, evenly spread over all."""
MOST_TRIED = 5
"""Templates that are tried on all files."""
MOST_LESS_LIKELY = 16
"""A suggestion may be this many times less likely than the best."""

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


@dataclass(frozen=True)
class Suggestion:
    """Templates for --image and --label, the number of pairs they find, and of files that they leave unmatched."""

    image: str
    label: str
    pairs: int
    unmatched: int

    def __str__(self) -> str:
        counts = f"({counted(self.pairs, 'pair')}, {self.unmatched} without partner)"
        return f"--image '{self.image}' --label '{self.label}'  {counts}"


def suggest_templates(files: Iterable[str]) -> list[Suggestion]:
    """Return templates that pair some of the files, the most likely first."""
    pictures = [composed(path) for path in files if path.lower().endswith(PICTURES) and not set("{}*") & set(path)]
    seen: dict[NameDifference, set[tuple[str, SharedFolders]]] = {}
    sample = pictures[:: max(1, len(pictures) // SAMPLE)]
    for path, difference, folders in differences(pictures, sample):
        seen.setdefault(difference, set()).add((path, folders))
    weights: dict[Suggestion, float] = {}
    for difference in _likely({difference: len(votes) for difference, votes in seen.items()}, len(sample)):
        templates = _templates(difference, [folders for _, folders in seen[difference]])
        if suggestion := _try(pictures, *templates):
            weights.setdefault(suggestion, _likelihood(difference) * suggestion.pairs)

    def rank(suggestion: Suggestion) -> tuple[float, int, str, str]:
        return -weights[suggestion], suggestion.unmatched, suggestion.image, suggestion.label

    return sorted(weights, key=rank)


def _likely(votes: dict[NameDifference, int], sample: int) -> list[NameDifference]:
    """Choose the differences with telling words or many pictures; of two mirrored ones only the likelier."""
    weights = {
        difference: _likelihood(difference) * count
        for difference, count in votes.items()
        if _may_be_image(difference.image.words) and (_likelihood(difference) > 1 or count * 5 >= sample)
    }
    chosen: list[NameDifference] = []
    for difference in sorted(weights, key=lambda difference: (-weights[difference], difference)):
        mirrored = replace(difference, image=difference.label, label=difference.image)
        if mirrored not in chosen and weights[difference] * MOST_LESS_LIKELY >= max(weights.values()):
            chosen.append(difference)
    return chosen[:MOST_TRIED]


def _may_be_image(words: list[str]) -> bool:
    """Return False for words of other pictures, such as depth maps or labels."""
    return _any(words, _IMAGE_WORDS) or not _any(words, (*_LABEL_WORDS, *_OTHER_WORDS))


def _likelihood(difference: NameDifference) -> float:
    """Weigh the words that speak for an image and its label."""
    image, label = difference.image.words, difference.label.words
    power = 2 * _any(label, _LABEL_WORDS) - 3 * _any(label, _OTHER_WORDS) - 2 * _any(label, _IMAGE_WORDS)
    power += _any(image, _IMAGE_WORDS) - 4 * _any(image, (*_LABEL_WORDS, *_OTHER_WORDS))
    return float(2**power)


def speaks_against_labels(template: str) -> bool:
    """Return True if a template has a word of other pictures, such as depth maps or predictions."""
    return _any(re.findall("[a-z]+", template.casefold()), _OTHER_WORDS)


def _any(words: list[str], starts: tuple[str, ...]) -> bool:
    """Return True if a word is known, or begins with a known word of three or more letters."""
    return any(word == start or (len(start) > 2 and word.startswith(start)) for word in words for start in starts)


def _try(pictures: Sequence[str], image: str, label: str) -> Suggestion | None:
    """Count the pairs that two templates find among all pictures; return None if there are none or only problems."""
    try:
        matches = match_files(by_folder(pictures), Layout("", Template(image), Template(label), exclusive=False))
    except UsageError:
        return None
    pairs = len(matches.images.keys() & matches.labels.keys())
    if not pairs or matches.all_problems():
        return None
    return Suggestion(image, label, pairs, len(matches.images.keys() ^ matches.labels.keys()))


def _templates(difference: NameDifference, folders: list[SharedFolders]) -> tuple[str, str]:
    """Return the templates of a difference and the shared folders in which it was found."""
    tails = [tail for _, tail in folders]
    least = min(map(len, tails)) if difference.tails < 0 else difference.tails
    folder_names = [{head[index] for head, _ in folders} for index in range(difference.heads)]
    folder_names += [{tail[index] for tail in tails} for index in range(least)]
    levels = _placeholders(folder_names, any("{split}" in folder for folder in difference.image.folders))
    heads, kept = levels[: difference.heads], levels[difference.heads :]
    if difference.tails < 0:  # the key may contain the folders that vary, so the template ends before them
        kept = kept[: next((index for index, folder in enumerate(kept) if "{folder" in folder), len(kept))]
        kept = kept[: next((index + 1 for index, folder in enumerate(kept) if "{split}" in folder), len(kept))]
    image, label = (
        "/".join([*heads, *side.folders, *kept, f"{side.prefix}{{key}}{side.suffix}"])
        for side in (difference.image, difference.label)
    )
    return _capture_split_once(image), _capture_split_once(label)


def _placeholders(folder_names: Sequence[set[str]], has_split: bool) -> list[str]:
    """Return the template of each folder level. A level with one name names no split if another level does."""
    levels = [_placeholder(index, names) for index, names in enumerate(folder_names)]
    has_split |= any("{split}" in level for level, names in zip(levels, folder_names, strict=True) if len(names) > 1)
    if not has_split:
        return levels
    return [level if len(names) > 1 else next(iter(names)) for level, names in zip(levels, folder_names, strict=True)]


def _placeholder(index: int, folders: set[str]) -> str:
    """Return the template of one folder level: its only name, a name with `{split}`, or a capture of any name."""
    general = {with_split(folder) for folder in folders}
    return general.pop() if len(general) == 1 else f"{{folder{index + 1}}}"


def _capture_split_once(template: str) -> str:
    """Keep the first `{split}` and replace the others by `*`."""
    before, split, after = template.partition("{split}")
    return before + split + after.replace("{split}", "*")
