"""Match the files of a raw folder with the two templates of a layout; images and labels with one key are pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from packer.errors import Problem, first_of
from packer.pairs.candidates import MOST_NAMED, NO_TYPE, UNWRITABLE, UNWRITABLE_NAME, Candidate, Candidates
from packer.pairs.folder_names import FolderNames, Folders, names_in
from packer.pairs.layouts import Layout, Side, SplitKey
from packer.pairs.template import OTHER_PICTURES, PICTURES, composed, conversion


@dataclass
class Matches:
    """The image and the label of each key, and files that should be neither."""

    layout: Layout
    images: dict[SplitKey, str] = field(default_factory=dict)
    labels: dict[SplitKey, str] = field(default_factory=dict)
    duplicates: dict[tuple[Side, SplitKey], list[str]] = field(default_factory=dict)
    """All files of each key that has several images or labels."""
    problems: list[Problem] = field(default_factory=list)
    unpackable: dict[tuple[Side, SplitKey], str] = field(default_factory=dict)
    """Pictures of types that cannot be packed, with the key that they would have."""
    unread: list[tuple[Side, SplitKey, str]] = field(default_factory=list)
    """Pictures of such types that fit a template of the user."""
    others: int = 0
    """The number of pictures outside the folders of both templates."""

    def of(self, side: Side, key: SplitKey) -> Sequence[str]:
        """Return all images or labels of a key."""
        listed = self.images if side == "image" else self.labels
        return self.duplicates.get((side, key)) or ([listed[key]] if key in listed else [])

    def image_paths(self) -> list[str]:
        return [path for key in self.images for path in self.of("image", key)]

    def pair(self, key: SplitKey, line: str = "", split: str | None = None) -> Candidate:
        """Return the pair of a key that has an image. The label is an empty text if it has none."""
        image, label = self.images[key], self.labels.get(key, "")
        split = self.layout.split(key, image, label) if split is None else split
        return Candidate(split, key[1], image, label, line)

    def lacks_label(self, key: SplitKey) -> bool:
        """Return whether a key has an image and no label, not even one of a type that cannot be packed."""
        return key in self.images and key not in self.labels and ("label", key) not in self.unpackable

    def candidates(self, keep: bool = False) -> Candidates:
        """Return all pairs, and all files without a partner. With `keep`, an image without a label is a pair, too."""
        images, labels = self.images, self.labels
        if list(images) == list(labels) and not self.unread:  # then whole lists are paired, and nothing lacks a partner
            paired = sorted(zip(images, images.values(), labels.values(), strict=True))
            orphans: list[Problem] = []
        else:
            keys = [key for key in sorted(images) if key in labels or (keep and self.lacks_label(key))]
            paired = [(key, images[key], labels.get(key, "")) for key in keys]
            orphans = list(self._orphans(set(keys)))
        if self.layout.only_one_has_split:
            pairs = [self.pair(key) for key, _, _ in paired]
        else:
            pairs = [Candidate(split, key, image, label) for (split, key), image, label in paired]
        return Candidates(pairs, self.all_problems(), orphans, self.notes())

    def all_problems(self) -> list[Problem]:
        return [*self.problems, *self._duplicates()]

    def notes(self) -> list[str]:
        image, label = self.layout.image.text, self.layout.label.text
        fit = f"fit neither {image} nor {label}" if label.isprintable() else f"do not fit {image}"
        return [f"{self.others} other pictures {fit}"] if self.others else []

    def add(self, side: Side, keys: Sequence[SplitKey], paths: Sequence[str]) -> None:
        """Add images or labels with their keys."""
        listed = self.images if side == "image" else self.labels
        new = dict(zip(keys, paths, strict=True))
        if len(new) == len(paths) and new.keys().isdisjoint(listed.keys()):  # views: only the smaller one is searched
            listed.update(new)
            return
        for key, path in zip(keys, paths, strict=True):
            if key in listed:
                self.duplicates.setdefault((side, key), [listed[key]]).append(path)
            else:
                listed[key] = path

    def _duplicates(self) -> Iterator[Problem]:
        for (side, (split, key)), paths in sorted(self.duplicates.items()):
            files = ", ".join(first_of(sorted(paths), MOST_NAMED))
            cause = f"{len(paths)} {side}s for the key {key!r}"
            yield Problem(cause, "", (files,), "key", f"several {side}s", split=split)

    def _orphans(self, paired: Set[SplitKey]) -> Iterator[Problem]:
        for key in sorted(self.images.keys() - paired):
            yield self._lack("label", "image", key)
        for key in sorted(self.labels.keys() - self.images.keys()):
            yield self._lack("image", "label", key)
        for side, key, path in self.unread:
            other = self.labels if side == "image" else self.images
            if key in paired or key not in other or self.unpackable[side, key] != path:  # or its partner names it
                yield Problem(NO_TYPE, conversion(path), (path,), split=key[0])

    def _lack(self, side: Side, other: Side, key: SplitKey) -> Problem:
        """Describe the missing partner of a file on the `other` side."""
        file, path = min(self.of(other, key)), self.unpackable.get((side, key))
        if path is None:
            return lacks(side, other, file, key)
        cause = f"its {side} {path} is of a file type that cannot be packed"
        return Problem(cause, conversion(path), (file,), other, f"{side} of a type", split=key[0])


def lacks(side: Side, other: Side, file: str, key: SplitKey) -> Problem:
    """Return the problem of a file on the `other` side without a partner."""
    return Problem(f"has no {side}", "", (file,), other, split=key[0])


def match_files(folders: Folders, layout: Layout) -> Matches:
    """Sort the files into images, labels and others: whole folders where their names decide, else path by path."""
    matches = Matches(layout)
    problems: dict[str, Problem] = {}
    neither: list[str] = []
    for folder, names in folders.items():
        sides, by_path = _sides(folder, layout), []
        if sides is not None and folder.isprintable():
            joined = "".join(names)
            if not (joined.isascii() and joined.isprintable()):
                by_path = [name for name in names if not (name.isascii() and name.isprintable())]
                names = [name for name in names if name.isascii() and name.isprintable()]
            neither += [folder + name for name in _match_names(folder, names, sides, matches)]
        else:
            by_path = list(names)
        neither += [path for name in by_path if not _match_path(path := folder + name, matches, problems)]
    _match_neither(sorted(neither), matches, problems)
    matches.problems = [problems[path] for path in sorted(problems)]
    return matches


def _sides(folder: str, layout: Layout) -> list[tuple[Side, FolderNames]] | None:
    """Return which files a folder may hold, the more specific template first; None if only whole paths decide."""
    if not layout.image.fixed_ends or not layout.label.fixed_ends:
        return None
    image, label = names_in(folder, layout.image), names_in(folder, layout.label)
    if image and label and layout.image.literal == layout.label.literal:
        return None
    sides: list[tuple[Side, FolderNames]] = []
    if image:
        sides.append(("image", image))
    if label:
        sides.append(("label", label))
    return sides[::-1] if layout.label.literal > layout.image.literal else sides


def _match_names(
    folder: str, names: Sequence[str], sides: Sequence[tuple[Side, FolderNames]], matches: Matches
) -> Sequence[str]:
    """Sort the names in a folder into images and labels, and return the others."""
    for side, fitting in sides:  # a_mask.png fits {key}.png and {key}_mask.png: the longer template wins
        fits, keys = fitting.of(names)
        matches.add(side, matches.layout.split_keys(fitting.captures, keys), [folder + name for name in fits])
        chosen = set(fits) if len(fits) < len(names) else None
        names = [] if chosen is None else [name for name in names if name not in chosen]
    return names


def _match_path(path: str, matches: Matches, problems: dict[str, Problem]) -> bool:
    """Match one file by the regular expressions; return False if it is neither image nor label."""
    layout = matches.layout
    image, label = layout.keys(path)
    surplus = layout.label.literal - layout.image.literal
    if not path.isprintable() and UNWRITABLE.search(path) and (image or label):
        problems[path] = Problem(UNWRITABLE_NAME, "rename the file", (repr(path),))
    elif image and label and not surplus:
        problems[path] = Problem("fits --image and --label equally well", "make one of them more specific", (path,))
    elif label and (not image or surplus > 0):
        matches.add("label", [label], [path])
    elif image:
        matches.add("image", [image], [path])
    return bool(image or label)


def _match_neither(paths: Iterable[str], matches: Matches, problems: dict[str, Problem]) -> None:
    """Report the pictures in the folders of an exclusive layout; count all others."""
    layout = matches.layout
    folders = (*layout.image.folders, *layout.label.folders)
    for path in paths:
        suffix = path[path.rfind(".") :].lower()
        if suffix not in PICTURES and suffix not in OTHER_PICTURES:
            continue
        if suffix in OTHER_PICTURES and _match_other(path, path[: -len(suffix)], matches):
            continue
        if not layout.exclusive or not composed(path).startswith(folders):
            matches.others += 1
        elif suffix in OTHER_PICTURES:
            problems[path] = Problem(NO_TYPE, conversion(path), (path,))
        else:
            problems[path] = Problem(f"fits neither {layout.image.text} nor {layout.label.text}", "", (path,))


def _match_other(path: str, stem: str, matches: Matches) -> bool:
    """Add a picture that cannot be packed. Return whether it fits a template of the user: one without a suffix fits all
    pictures."""
    layout = matches.layout
    image = layout.image_key(stem + (layout.image.suffix or ".png"))
    label = layout.label_key(stem + (layout.label.suffix or ".png"))
    if image:
        matches.unpackable.setdefault(("image", image), path)
    if label:
        matches.unpackable.setdefault(("label", label), path)
    if layout.exclusive:
        return False
    if label and not layout.label.suffix and (not image or layout.label.literal > layout.image.literal):
        matches.unread.append(("label", label, path))
    elif image and not layout.image.suffix:
        matches.unread.append(("image", image, path))
    else:
        return False
    return True
