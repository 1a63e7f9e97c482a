"""Pair very many files: the names of images and labels are two sorted lists, on disk if they are long, joined by key.

It finds files without a partner. Any other problem ends the attempt, and all files are matched together like a few
(match.py), with an object for each. So messages are found in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packer.errors import Problem
from packer.pairs.asked_paths import NotPlainError
from packer.pairs.candidates import Candidate
from packer.pairs.draw_splits import SplitDrawer
from packer.pairs.files import RawFiles
from packer.pairs.folder_names import Folders
from packer.pairs.given_layout import given_layout
from packer.pairs.layouts import Layout, SplitKey, find_layouts
from packer.pairs.match import Matches, lacks, match_files
from packer.pairs.name_suffixes import FIRST_FILES, with_suffixes
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_lists import USUAL_FOLDERS, usual_lists
from packer.spill.sorted_lines import SortedLines

Row = tuple[str, str, tuple[str, ...]]
"""Split, key, and the paths of image and label."""


@dataclass
class JoinedFiles:
    """The layout of very many files, and their pairs in the order of their keys."""

    layout: Layout
    notes: list[str]
    rules: PairingRules
    images: SortedLines = field(default_factory=SortedLines)
    labels: SortedLines = field(default_factory=SortedLines)
    splits: set[str] = field(default_factory=set)
    """The splits of the rows so far."""
    missing: list[Problem] = field(default_factory=list)
    """The files without a partner so far."""
    problems: tuple[Problem, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield all rows, or raise NotPlainError."""
        rules, layout = self.rules, self.layout
        drawer = SplitDrawer(rules.split, rules.split_by, layout) if rules.split else None
        for key, image, label in self._pairs():
            split = layout.split(key, image, label)
            if drawer is not None:
                split = drawer.draw(Candidate(split, key[1], image, label))
            self.splits.add(split)
            yield split, key[1], (image, label) if rules.has_label else (image,)
        if drawer is not None:
            if drawer.problems():
                raise NotPlainError("folds that do not fit the rows")
            self.notes += drawer.notes()

    def _pairs(self) -> Iterator[tuple[SplitKey, str, str]]:
        """Yield each key with its image and its label, which is empty if an image without one is a row."""
        labels, without_image = _once(self.labels), list[Problem]()
        label = next(labels, None)
        for key, image in _once(self.images):
            while label is not None and label[0] < key:
                without_image.append(lacks("image", "label", label[1], label[0]))
                label = next(labels, None)
            if label is not None and label[0] == key:
                yield key, image, label[1]
                label = next(labels, None)
            elif self.rules.keeps:
                yield key, image, ""
            else:
                self.missing.append(lacks("label", "image", image, key))
        if label is not None:
            without_image += [lacks("image", "label", path, key) for key, path in (label, *labels)]
        self.missing += without_image


def join_files(files: RawFiles, rules: PairingRules) -> JoinedFiles | None:
    """Sort files into images and labels; return None if they have no plain layout."""
    layout = given_layout(rules) or _known_layout(files)
    if layout is None or (not layout.has_splits and usual_lists(_texts(files))):
        return None
    others, joined = 0, JoinedFiles(layout, [], rules)
    for folders in files.parts():
        matches = match_files(folders, layout)
        if matches.problems or matches.duplicates or matches.unpackable:
            return None
        others += matches.others
        for paths, lines in ((matches.images, joined.images), (matches.labels, joined.labels)):
            if paths:
                lines.add([f"{split}\0{key}\0{path}" for (split, key), path in paths.items()])
    joined.notes += [*Matches(layout, others=others).notes(), *files.notes]
    return joined


def _known_layout(files: RawFiles) -> Layout | None:
    """Return the only layout that fits; None if all files must be seen to know it."""
    first = files.first(FIRST_FILES)
    layouts = find_layouts(first)
    if len(layouts) != 1:
        return None
    layout = with_suffixes(layouts[0], first)
    matches = match_files(first, layout)
    return None if matches.images.keys().isdisjoint(matches.labels) else layout


def _texts(files: RawFiles) -> Folders:
    """Return the files that may be split lists."""
    folders = {f"{folder}/".lstrip("/") for folder in USUAL_FOLDERS}
    return {folder: [name for name in files.names(folder) if name.endswith(".txt")] for folder in folders}


def _once(lines: Iterable[str]) -> Iterator[tuple[SplitKey, str]]:
    """Yield the key and the path of each line, or raise NotPlainError if a key occurs twice."""
    before: SplitKey | None = None
    for line in lines:
        split, key, path = line.split("\0")
        if (split, key) == before:
            raise NotPlainError("several files")
        before = split, key
        yield before, path
