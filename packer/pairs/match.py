"""Matching: every file of a raw folder against the two templates of a layout, and pairs where both say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packer.pairs.candidates import UNWRITABLE, Found, FoundPair
from packer.pairs.layouts import Layout, Place
from packer.pairs.template import OTHER_PICTURES, PICTURES, composed


@dataclass
class Matches:
    """For each place the image paths and the label paths, and what should be neither."""

    layout: Layout
    images: dict[Place, list[str]] = field(default_factory=dict)
    labels: dict[Place, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    others: int = 0
    """Pictures that no template speaks of."""

    def pair(self, place: Place, line: str = "", split: str | None = None) -> FoundPair:
        """The pair of a place that has both."""
        image, label = self.images[place][0], self.labels[place][0]
        split = self.layout.split(place, image, label) if split is None else split
        return FoundPair(split, place[1], image, label, line)

    def found(self) -> Found:
        """All pairs, and all that have no partner."""
        places = sorted(place for place in self.images if place in self.labels)
        return Found([self.pair(place) for place in places], self.all_problems(), list(self._orphans()), self.notes())

    def all_problems(self) -> list[str]:
        return [*self.problems, *self._duplicates()]

    def notes(self) -> list[str]:
        image, label = self.layout.image.text, self.layout.label.text
        return [f"{self.others} other pictures fit neither {image} nor {label}"] if self.others else []

    def _duplicates(self) -> Iterator[str]:
        for what, matches in (("images", self.images), ("labels", self.labels)):
            for _, key in sorted(place for place, paths in matches.items() if len(paths) > 1):
                paths = matches[_, key]
                yield f"{', '.join(paths)}: {len(paths)} {what} for the key {key!r}"

    def _orphans(self) -> Iterator[str]:
        for place in sorted(self.images.keys() - self.labels.keys()):
            yield f"{self.images[place][0]}: has no label"
        for place in sorted(self.labels.keys() - self.images.keys()):
            yield f"{self.labels[place][0]}: has no image"


def match(files: Iterable[str], layout: Layout) -> Matches:
    """Sort the files into images, labels and what should be neither."""
    found = Matches(layout)
    closer = layout.label.literal - layout.image.literal
    for path in files:
        image, label = layout.places(path)
        if not image and not label:
            _match_neither(path, found)
        elif not path.isprintable() and UNWRITABLE.search(path):
            found.problems.append(f"{path!r}: the name has control characters or is not UTF-8; rename the file")
        elif image and label and not closer:
            found.problems.append(f"{path}: fits --image and --label alike")
        elif label and (not image or closer > 0):
            found.labels.setdefault(label, []).append(path)  # a_mask.png beside a.png fits both: the closer one counts
        elif image:
            found.images.setdefault(image, []).append(path)
    return found


def _match_neither(path: str, found: Matches) -> None:
    """A picture in the folders of an exclusive layout should have fitted; others are counted."""
    layout, suffix = found.layout, "." + path.rpartition(".")[2].lower()
    inside = layout.exclusive and composed(path).startswith((*layout.image.folders, *layout.label.folders))
    if inside and suffix in OTHER_PICTURES:
        found.problems.append(f"{path}: is of a kind that cannot be packed; convert it to PNG")
    elif inside and suffix in PICTURES:
        found.problems.append(f"{path}: fits neither {layout.image.text} nor {layout.label.text}")
    else:
        found.others += suffix in (*PICTURES, *OTHER_PICTURES)
