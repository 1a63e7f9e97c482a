"""Match the files of a raw folder with the two templates of a layout; images and labels with one key are pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packer.errors import first_of
from packer.pairs.candidates import MOST_NAMED, UNWRITABLE, Candidate, Candidates
from packer.pairs.layouts import Layout, SplitKey
from packer.pairs.template import OTHER_PICTURES, PICTURES, composed


@dataclass
class Matches:
    """The image paths and the label paths of each key, and files that should be neither."""

    layout: Layout
    images: dict[SplitKey, list[str]] = field(default_factory=dict)
    labels: dict[SplitKey, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unpackable: dict[tuple[str, SplitKey], str] = field(default_factory=dict)
    """Pictures of types that cannot be packed, by `image` or `label` and the key that they would have."""
    others: int = 0
    """The number of pictures outside the folders of both templates."""

    def pair(self, key: SplitKey, line: str = "", split: str | None = None) -> Candidate:
        """Return the pair of a key that has an image and a label."""
        image, label = self.images[key][0], self.labels[key][0]
        split = self.layout.split(key, image, label) if split is None else split
        return Candidate(split, key[1], image, label, line)

    def candidates(self) -> Candidates:
        """Return all pairs, and all files without a partner."""
        keys = sorted(key for key in self.images if key in self.labels)
        return Candidates([self.pair(key) for key in keys], self.all_problems(), list(self._orphans()), self.notes())

    def all_problems(self) -> list[str]:
        return [*self.problems, *self._duplicates()]

    def notes(self) -> list[str]:
        image, label = self.layout.image.text, self.layout.label.text
        return [f"{self.others} other pictures fit neither {image} nor {label}"] if self.others else []

    def _duplicates(self) -> Iterator[str]:
        for kind, matches in (("images", self.images), ("labels", self.labels)):
            for split, key in sorted(key for key, paths in matches.items() if len(paths) > 1):
                paths = matches[split, key]
                yield f"{', '.join(first_of(paths, MOST_NAMED))}: {len(paths)} {kind} for the key {key!r}"

    def _orphans(self) -> Iterator[str]:
        for key in sorted(self.images.keys() - self.labels.keys()):
            yield f"{self.images[key][0]}: {self._lack('label', key)}"
        for key in sorted(self.labels.keys() - self.images.keys()):
            yield f"{self.labels[key][0]}: {self._lack('image', key)}"

    def _lack(self, what: str, key: SplitKey) -> str:
        """Describe the missing partner of a file."""
        path = self.unpackable.get((what, key))
        if path is None:
            return f"has no {what}"
        return f"its {what} {path} is of a file type that cannot be packed; convert it to PNG"


def match_files(files: Iterable[str], layout: Layout) -> Matches:
    """Sort the files into images, labels and others."""
    matches = Matches(layout)
    surplus = layout.label.literal - layout.image.literal
    for path in files:
        image, label = layout.keys(path)
        if not image and not label:
            _match_neither(path, matches)
        elif not path.isprintable() and UNWRITABLE.search(path):
            matches.problems.append(f"{path!r}: the name has control characters or is not UTF-8; rename the file")
        elif image and label and not surplus:
            matches.problems.append(f"{path}: fits --image and --label equally well; make one of them more specific")
        elif label and (not image or surplus > 0):
            matches.labels.setdefault(label, []).append(
                path
            )  # a_mask.png fits {key}.png and {key}_mask.png: the longer template wins
        elif image:
            matches.images.setdefault(image, []).append(path)
    return matches


def _match_neither(path: str, matches: Matches) -> None:
    """Report a picture in the folders of an exclusive layout; count all others."""
    layout, suffix = matches.layout, "." + path.rpartition(".")[2].lower()
    if suffix in OTHER_PICTURES:
        for what, template, number in (("image", layout.image, 0), ("label", layout.label, 1)):
            if key := layout.keys(path[: -len(suffix)] + (template.suffix or ".png"))[number]:
                matches.unpackable.setdefault((what, key), path)
    inside = layout.exclusive and composed(path).startswith((*layout.image.folders, *layout.label.folders))
    if inside and suffix in OTHER_PICTURES:
        matches.problems.append(f"{path}: this file type cannot be packed; convert it to PNG")
    elif inside and suffix in PICTURES:
        matches.problems.append(f"{path}: fits neither {layout.image.text} nor {layout.label.text}")
    else:
        matches.others += suffix in (*PICTURES, *OTHER_PICTURES)
