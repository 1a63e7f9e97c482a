"""Pair very many files: the names of images and labels are two sorted lists, on disk if they are long, joined by key.

Only what needs no words is paired so: a file without a partner, or any other problem, ends the attempt, and all files
are matched together as a few are (match.py), with an object for each. So messages are found in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from packer.pairs.candidates import Candidate
from packer.pairs.draw_splits import SplitDrawer
from packer.pairs.files import RawFiles, find_files
from packer.pairs.folder_names import Folders
from packer.pairs.given_layout import given_layout
from packer.pairs.layouts import Layout, SplitKey, find_layouts
from packer.pairs.match import Matches, match_files
from packer.pairs.name_suffixes import FIRST_FILES, with_suffixes
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_lists import USUAL_FOLDERS, usual_lists

MANY_FILES = 1 << 16
"""Fewer files are matched together."""

Row = tuple[str, str, tuple[str, ...]]
"""Split, key, and the paths of image and label."""


class AddedLines(Protocol):
    """Lines that are added in any order and come back in order."""

    def add(self, lines: Sequence[str]) -> None:
        """Add some lines, at least one."""

    def __iter__(self) -> Iterator[str]: ...


@dataclass
class Joined:
    """The layout of very many files, and their pairs in the order of their keys."""

    layout: Layout
    notes: list[str]
    images: AddedLines
    labels: AddedLines
    keeps: bool
    """True if an image without a label is a row."""
    has_label: bool
    drawer: SplitDrawer | None = None
    """Draws the splits, which the files do not have; None if nothing is drawn."""
    splits: set[str] = field(default_factory=set)
    """The splits of the rows so far."""

    def rows(self) -> Iterator[Row]:
        """Yield all rows, or raise NotPlainError."""
        labels = map(_parts, self.labels)
        next_label, label = next(labels, None), ""
        before: SplitKey | None = None
        for key, image in map(_parts, self.images):
            if key == before:
                raise NotPlainError("several images")
            if next_label is not None and next_label[0] == key:
                label, next_label = next_label[1], next(labels, None)
            elif self.keeps:
                label = ""
            else:
                raise NotPlainError("an image without a label")
            split = self.layout.split(key, image, label)
            if self.drawer is not None:
                split = self.drawer.draw(Candidate(split, key[1], image, label))
            self.splits.add(split)
            yield split, key[1], (image, label) if self.has_label else (image,)
            before = key
        if next_label is not None or before is None:
            raise NotPlainError("a label without an image, several labels, or no pair")
        if self.drawer is not None:
            if self.drawer.problems():
                raise NotPlainError("folds that do not fit the rows")
            self.notes += self.drawer.notes()


class NotPlainError(Exception):
    """Something that a message must name. It is never shown."""


def join_files(
    raw: Path, rules: PairingRules, leave_out: Path | None, lines: Callable[[], AddedLines]
) -> Joined | RawFiles:
    """Sort very many files into images and labels. Return all files if they must be matched together."""
    files = find_files(raw, leave_out)
    many = files.count >= MANY_FILES and not (rules.pairs or rules.lists or rules.split_exact or rules.further)
    many = many and not rules.has_channels
    joined = _join(files, rules, lines(), lines()) if many else None
    return joined or (find_files(raw, leave_out) if files.is_taken else files)


def _join(files: RawFiles, rules: PairingRules, images: AddedLines, labels: AddedLines) -> Joined | None:
    layout = given_layout(rules) or _known_layout(files)
    if layout is None or (not layout.has_splits and usual_lists(_texts(files))):
        return None
    others = 0
    for folders in files.take():
        matches = match_files(folders, layout)
        if matches.problems or matches.duplicates or matches.unpackable:
            return None
        others += matches.others
        for paths, lines in ((matches.images, images), (matches.labels, labels)):
            if paths:
                lines.add([f"{split}\0{key}\0{path}" for (split, key), path in paths.items()])
    notes = [*Matches(layout, others=others).notes(), *files.notes]
    drawer = SplitDrawer(rules.split, rules.split_by, layout) if rules.split else None
    return Joined(layout, notes, images, labels, rules.keeps, rules.has_label, drawer)


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


def _parts(line: str) -> tuple[SplitKey, str]:
    split, key, path = line.split("\0")
    return (split, key), path
